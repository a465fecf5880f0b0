"""The inventory of a node that is up: how Ansible reaches it. What else a rehearsal sets stands in inventory/rehearsal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from . import config
from .node import Node

HOSTS = config.REPO / "inventory" / "rehearsal" / "hosts.yml"
SCENARIO = config.REPO / ".cache" / "molecule" / "inventory"
HEADER = "---\n# Written while a rehearsal node is up and removed with it; not for git.\n"


def host_variables(node: Node) -> dict[str, Any]:
    """Connection variables of a node."""
    return {
        "ansible_host": node.spec.address,
        "ansible_user": config.SSH_USER,
        "ansible_ssh_private_key_file": str(node.key),
        "node_baseline_cache_dir": str(node.workshop.root / "wheels"),
        # -F none: the user's own ssh configuration must not change what is tried.
        "ansible_ssh_common_args": f"-F none -o UserKnownHostsFile={node.known_hosts} -o StrictHostKeyChecking=yes",
    }


def write_scenario(node: Node) -> Path:
    """Write the inventory folder of the node that role scenarios run on; the rehearsal's variables apply to it too."""
    SCENARIO.mkdir(parents=True, exist_ok=True)
    variables = SCENARIO / "group_vars"
    if not variables.is_symlink():
        variables.symlink_to(config.REPO / "inventory" / "rehearsal" / "group_vars")
    write_hosts(node, SCENARIO / "hosts.yml")
    return SCENARIO


def write_hosts(node: Node, path: Path = HOSTS) -> None:
    """Write the inventory file for one node."""
    content = {"gpu_nodes": {"hosts": {node.spec.name: host_variables(node)}}}
    partial = path.with_suffix(".partial")
    partial.write_text(HEADER + yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    partial.replace(path)


def remove_hosts(path: Path = HOSTS) -> None:
    """Take the inventory file away again."""
    path.unlink(missing_ok=True)
