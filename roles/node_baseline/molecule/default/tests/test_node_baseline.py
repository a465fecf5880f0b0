"""What a user of the node would lose if node_baseline had not done its work."""

import json


def test_the_interpreter_has_the_locked_packages(host):
    listed = host.run(
        "/opt/gpunode/venv/bin/python -c 'import importlib.metadata as m, json;"
        " print(json.dumps({d.name.lower().replace(chr(95), chr(45)): d.version for d in m.distributions()}))'"
    )
    assert listed.rc == 0, listed.stderr
    installed = json.loads(listed.stdout)
    assert installed["kubernetes"].startswith("37.")
    assert {"httpx", "jinja2", "pyyaml", "nvidia-ml-py", "prometheus-client"} <= installed.keys()


def test_the_interpreter_trusts_the_systems_python_only(host):
    assert host.file("/opt/gpunode/venv/bin/python").linked_to.startswith("/usr/bin/python3")
    # The system's own Python got nothing.
    assert host.run("/usr/bin/python3 -c 'import kubernetes'").rc != 0


def test_kubelet_finds_the_kernel_parameters_that_it_insists_on(host):
    assert host.sysctl("vm.overcommit_memory") == 1
    assert host.sysctl("vm.panic_on_oom") == 0
    assert host.sysctl("kernel.panic") == 10
    assert host.sysctl("kernel.panic_on_oops") == 1


def test_pods_can_reach_the_world_and_watch_files(host):
    assert host.sysctl("net.ipv4.ip_forward") == 1
    assert host.sysctl("fs.inotify.max_user_instances") >= 1024


def test_parameters_come_back_at_the_next_boot(host):
    persistent = host.file("/etc/sysctl.d/90-gpunode.conf")
    assert persistent.contains("^vm.overcommit_memory = 1$")
    assert persistent.mode == 0o644


def test_apt_is_left_usable(host):
    assert host.run("apt-get check").rc == 0


def test_shared_folders_keep_their_modes(host):
    for path, mode in {"/etc": 0o755, "/opt": 0o755, "/usr": 0o755, "/var/lib": 0o755, "/tmp": 0o1777}.items():
        assert host.file(path).mode == mode, path
