"""A user would lose: a node that boots on both kinds of cgroup hosts, and an inventory that reaches it safely."""

from __future__ import annotations

from pathlib import Path

import yaml
from rehearsal import config, inventory
from rehearsal.node import Node, init_command
from rehearsal.podman import Podman
from rehearsal.prepared import ROLES, _uses_plugins
from rehearsal.workshop import Workshop


def test_cgroup_v1_gets_a_private_systemd_hierarchy(tmp_path: Path) -> None:
    assert init_command(tmp_path)[-1].endswith("umount -l /sys/fs/cgroup/systemd; exec /sbin/init")


def test_cgroup_v2_boots_plainly(tmp_path: Path) -> None:
    (tmp_path / "cgroup.controllers").touch()
    assert init_command(tmp_path)[-1] == "mount --make-rshared /; exec /sbin/init"


def node(tmp_path: Path) -> Node:
    workshop = Workshop(tmp_path, tmp_path / "log")
    return Node(workshop, Podman(workshop), config.REHEARSAL_NODE)


def test_inventory_checks_the_host_key(tmp_path: Path) -> None:
    path = tmp_path / "hosts.yml"
    inventory.write_hosts(node(tmp_path), path)
    host = yaml.safe_load(path.read_text())["gpu_nodes"]["hosts"][config.REHEARSAL_NODE.name]
    assert host["ansible_host"] == config.REHEARSAL_NODE.address
    assert "StrictHostKeyChecking=yes" in host["ansible_ssh_common_args"]
    inventory.remove_hosts(path)
    assert not path.exists()


def test_prepared_nodes_follow_the_order_of_the_playbooks() -> None:
    roles = []
    for name in ("node", "serve"):
        for play in yaml.safe_load((config.REPO / "playbooks" / f"{name}.yml").read_text()):
            roles += [entry if isinstance(entry, str) else entry["role"] for entry in play.get("roles", [])]
    assert tuple(role.removeprefix("gpunode.serving.") for role in roles) == ROLES


def test_a_change_of_a_module_concerns_only_roles_that_use_it() -> None:
    assert [role for role in ROLES if _uses_plugins(role)] == ["nvidia_device_plugin", "vllm_server"]


def test_collection_links_resolve() -> None:
    farm = config.REPO / ".collections" / "ansible_collections" / "gpunode" / "serving"
    for name in ("galaxy.yml", "meta", "playbooks", "plugins", "roles"):
        link = farm / name
        assert link.is_symlink()
        assert link.resolve() == config.REPO / name
