"""What a user of the node would lose if k3s_server had not done its work."""

import json

import pytest


def api(host, *words):
    """What the API server answers to `kubectl get`."""
    return json.loads(host.check_output("/usr/local/bin/k3s kubectl get --output=json " + " ".join(words)))


@pytest.fixture(scope="module")
def node(host):
    nodes = api(host, "nodes")["items"]
    assert len(nodes) == 1
    return nodes[0]


def test_the_node_is_ready(node):
    assert [c["status"] for c in node["status"]["conditions"] if c["type"] == "Ready"] == ["True"]


def test_gpu_pods_have_a_handler(node):
    assert "nvidia" in [handler["name"] for handler in node["status"]["runtimeHandlers"]]


def test_the_device_plugin_will_find_the_node(node):
    assert node["metadata"]["labels"]["nvidia.com/gpu.present"] == "true"


def test_it_runs_the_release_that_is_recorded(host, node):
    release = json.loads(host.file("/etc/rancher/k3s/release.json").content_string)
    assert node["status"]["nodeInfo"]["kubeletVersion"] == release["version"]
    assert host.file("/usr/local/bin/k3s").sha256sum == release["sha256"]


@pytest.mark.parametrize("name", ["config.yaml", "token", "k3s.yaml"])
def test_others_cannot_read_secrets(host, name):
    path = host.file(f"/etc/rancher/k3s/{name}")
    assert path.mode == 0o600
    assert path.user == "root"


def test_the_secret_is_on_no_command_line(host):
    secret = host.file("/etc/rancher/k3s/token").content_string.strip()
    assert len(secret) >= 32
    assert secret not in host.file("/etc/rancher/k3s/config.yaml").content_string
    assert secret not in host.check_output("cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' || true")
    assert secret not in host.check_output("journalctl --unit=k3s.service --no-pager --output=cat")


def test_it_comes_back_at_the_next_boot(host):
    unit = host.service("k3s")
    assert unit.is_running
    assert unit.is_enabled


def test_pods_outlive_a_restart_of_k3s(host):
    assert host.service("k3s").systemd_properties["KillMode"] == "process"


def test_what_it_started_with_is_noted(host):
    noted = json.loads(host.file("/etc/rancher/k3s/started-with.json").content_string)
    assert noted["nvidia_runtimes"].strip()
    assert set(noted) == {"config", "unit", "binary", "images", "nvidia_runtimes"}


def test_every_runtime_class_is_not_the_default_one(host):
    assert "default_runtime_name" not in host.file("/var/lib/rancher/k3s/agent/etc/containerd/config.toml").content_string
    assert api(host, "runtimeclass", "nvidia")["handler"] == "nvidia"


def test_pods_get_a_nameserver_of_the_network(host):
    chosen = [
        line.split(": ", 1)[1]
        for line in host.file("/etc/rancher/k3s/config.yaml").content_string.splitlines()
        if line.startswith("resolv-conf")
    ]
    assert len(chosen) == 1
    assert host.file(chosen[0]).contains("^nameserver ")
    assert not host.file(chosen[0]).contains("^nameserver 127")
