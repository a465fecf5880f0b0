"""Prepared nodes: the disk of a node on which the roles before a given one have run, so that a role is tested from there.

Each is made from the one before it by one role, kept as a copy of the node's root, and made again when that role, one
before it, or anything the node is built from has changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import config, inventory, playbook
from .build import Kit
from .interrupts import undisturbed
from .node import Node
from .podman import Podman
from .progress import Display
from .workshop import RehearsalError, Workshop

ROLES = (
    "node_baseline",
    "nvidia_driver",
    "nvidia_container_toolkit",
    "k3s_server",
    "nvidia_device_plugin",
    "vllm_server",
)
"""In the order of playbooks/node.yml and serve.yml."""


@dataclass(frozen=True)
class Preparer:
    """Makes and keeps prepared nodes."""

    workshop: Workshop
    kit: Kit

    def node(self) -> Node:
        """The node that scenarios run on."""
        return Node(self.workshop, Podman(self.workshop), config.MOLECULE_NODE)

    def before(self, role: str, display: Display) -> Path:
        """Root folder of a node on which every role before ``role`` has run.

        :raises RehearsalError: for a role that is not in the chain, or when one before it fails
        """
        if role not in ROLES:
            raise RehearsalError(f"no prepared node for role {role}: the chain is {', '.join(ROLES)}")
        root = self.kit.rootfs
        for index in range(ROLES.index(role)):
            root = self._after(ROLES[: index + 1], root, display)
        return root

    def _after(self, done: Sequence[str], base: Path, display: Display) -> Path:
        role = done[-1]
        sources = [
            *(config.REPO / "roles" / name / part for name in done for part in _parts(name)),
            config.REPO / "inventory" / "rehearsal" / "group_vars",
        ]
        if any(_uses_plugins(name) for name in done):
            sources.append(config.REPO / "plugins")
        extra = [self.kit.rootfs.parent.name, self.kit.mirror.name, *done]
        name = f"prepared-{role.replace('_', '-')}"

        def make(folder: Path) -> None:
            with display.stage(f"prepare a node with {role}") as stage:
                node = self.node()
                try:
                    node.create(base)
                    node.start(self.kit.mirror)
                    self._apply(node, role, stage.note)
                    node.stop()
                    node.root.rename(folder / "root")
                finally:
                    with undisturbed():
                        node.destroy()

        return self.workshop.artifact(name, make, sources=sources, extra=extra) / "root"

    def _apply(self, node: Node, role: str, note: Callable[[str], None]) -> None:
        where = inventory.write_scenario(node)
        outcome = playbook.run_playbook(
            self.workshop,
            config.REPO / ".config" / "molecule" / "converge.yml",
            arguments=["-i", str(where)],
            environment={"MOLECULE_PROJECT_DIRECTORY": str(config.REPO / "roles" / role)},
            note=lambda text, _count: note(text),
        )
        if not outcome.ok:
            raise RehearsalError(
                f"preparing a node with role {role} failed:\n"
                + "\n".join(outcome.failures)
                + f"\nThe full log is {self.workshop.log_path}"
            )


def _parts(role: str) -> list[str]:
    """Folders of a role that decide what it does to a node (not its tests and texts)."""
    names = ("defaults", "vars", "files", "templates", "tasks", "handlers", "meta")
    return [name for name in names if (config.REPO / "roles" / role / name).is_dir()]


def _uses_plugins(role: str) -> bool:
    """Whether a role's tasks or variables name a module or filter of this collection (and not only its roles)."""
    home = config.REPO / "roles" / role
    text = "".join(path.read_text() for part in _parts(role) for path in sorted((home / part).rglob("*.yml")))
    named = set(re.findall(r"gpunode\.serving\.(\w+)", text))
    return not named <= set(ROLES)
