"""What a user of the node would lose if nvidia_container_toolkit had not done its work."""

import pytest

PACKAGES = ["nvidia-container-toolkit", "nvidia-container-toolkit-base", "libnvidia-container-tools", "libnvidia-container1"]


def test_k3s_will_find_the_runtime(host):
    # k3s looks on the PATH of its service when it starts.
    assert host.file("/usr/bin/nvidia-container-runtime").mode & 0o111


def test_the_toolkit_can_describe_the_gpu(host):
    described = host.run("nvidia-ctk --quiet cdi generate")
    assert described.rc == 0, described.stderr
    assert "/dev/nvidia0" in described.stdout


@pytest.mark.parametrize("package", PACKAGES)
def test_all_packages_are_of_one_version_and_stay_there(host, package):
    assert host.package(package).version == host.package(PACKAGES[0]).version
    assert package in host.check_output("apt-mark showhold").split()


def test_containerds_configuration_is_left_to_k3s(host):
    assert not host.file("/etc/containerd/config.toml").exists
    assert not host.file("/etc/containerd/conf.d/99-nvidia.toml").exists


def test_settings_are_the_packages_own(host):
    settings = host.file("/etc/nvidia-container-runtime/config.toml")
    assert settings.contains("#accept-nvidia-visible-devices-envvar-when-unprivileged = true")


def test_one_source_names_the_repository(host):
    assert host.check_output(
        "grep -rl libnvidia-container /etc/apt/sources.list.d /etc/apt/sources.list 2>/dev/null || true"
    ).split() == ["/etc/apt/sources.list.d/nvidia-container-toolkit.sources"]
    assert host.run("apt-get check").rc == 0
