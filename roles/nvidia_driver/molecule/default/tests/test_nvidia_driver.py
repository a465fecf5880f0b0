"""What a user of the node would lose if nvidia_driver had not done its work."""

import re

import pytest

QUERY = "nvidia-smi --query-gpu=name,driver_version,persistence_mode --format=csv,noheader"


def test_the_gpu_answers_with_persistence_mode_on(host):
    seen = host.run(QUERY)
    assert seen.rc == 0, seen.stdout
    rows = [row.split(", ") for row in seen.stdout.splitlines()]
    assert [row[2] for row in rows] == ["Enabled"]


def test_module_loaded_driver_and_userspace_agree(host):
    on_disk = host.check_output("modinfo --field=version nvidia")
    loaded = re.search(r"Module(?: for \S+)?\s+([\d.]+)", host.file("/proc/driver/nvidia/version").content_string)
    userspace = host.check_output("nvidia-smi --query-gpu=driver_version --format=csv,noheader")
    assert loaded is not None
    assert on_disk == loaded.group(1) == userspace
    assert on_disk.startswith("595.")


@pytest.mark.parametrize("device", ["/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"])
def test_device_nodes_are_there(host, device):
    assert host.run(f"test -c {device}").rc == 0


@pytest.mark.parametrize("package", ["nvidia-driver-cuda", "nvidia-kernel-open-dkms", "libcuda1", "libnvidia-ml1"])
def test_an_upgrade_leaves_the_driver_alone(host, package):
    assert package in host.check_output("apt-mark showhold").split()
    policy = host.check_output(f"apt-cache policy {package}")
    assert re.search(r"Candidate: 595\.", policy)


def test_unattended_upgrades_leaves_driver_and_kernel_alone(host):
    settings = host.check_output("apt-config dump Unattended-Upgrade::Package-Blacklist")
    assert "^nvidia-" in settings
    assert "^linux-image-" in settings


def test_the_persistence_daemon_comes_back_at_the_next_boot(host):
    daemon = host.service("nvidia-persistenced")
    assert daemon.is_running
    assert daemon.is_enabled
    # The package's own unit starts it with the mode off.
    assert "--persistence-mode" in daemon.systemd_properties["ExecStart"]
    assert "--no-persistence-mode" not in daemon.systemd_properties["ExecStart"]


def test_nouveau_is_kept_away(host):
    assert host.file("/etc/modprobe.d/nvidia-driver-nouveau.conf").contains("^blacklist nouveau$")
    assert not host.file("/sys/module/nouveau").exists


def test_the_repositorys_key_counts_for_that_repository_only(host):
    assert host.file("/etc/apt/sources.list.d/nvidia-driver.sources").contains("^Signed-By: /etc/apt/keyrings/nvidia-driver.asc$")
    assert not host.file("/etc/apt/trusted.gpg").exists
    assert host.run("ls /etc/apt/trusted.gpg.d | grep -i nvidia").rc != 0
