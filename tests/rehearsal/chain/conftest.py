"""One bare node for the whole chain; the tests of this folder run on it in the order in which they stand."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from rehearsal import config, inventory
from rehearsal.build import build_kit
from rehearsal.cli import keep_go_inside
from rehearsal.node import Node
from rehearsal.playbook import Outcome, run_playbook
from rehearsal.podman import Podman
from rehearsal.progress import Display
from rehearsal.workshop import Workshop

FINGERPRINT = (
    "sudo sh -c 'dpkg-query -W; find /etc /opt /usr/local /var/lib/rancher /var/lib/kubelet -xdev 2>/dev/null"
    ' | sort | xargs -d"\\n" stat -c "%n %s %Y %a"; systemctl list-units --plain --no-legend --state=running --type=service\''
)


@dataclass
class Chain:
    """The node under test and what was run on it."""

    workshop: Workshop
    node: Node
    outcomes: dict[str, Outcome] = field(default_factory=dict)

    def play(self, playbook: str, *arguments: str) -> Outcome:
        """Run a playbook of this project on the node."""
        outcome = run_playbook(self.workshop, config.REPO / playbook, arguments=arguments)
        print(f"{playbook} {' '.join(arguments)}: {outcome.status} in {outcome.seconds:.0f} s\n{outcome.recap}")
        return outcome

    def fingerprint(self) -> str:
        """Packages, files and services of the node: what a run may have changed."""
        return self.node.ssh(FINGERPRINT).stdout

    def log(self) -> str:
        """Everything that was printed so far."""
        return self.workshop.log_path.read_text(encoding="utf-8")

    def explain(self, outcome: Outcome) -> str:
        """Why a run ended as it did, for an assertion's message."""
        return "\n".join([outcome.status, *outcome.failures, f"full log: {self.workshop.log_path}"])


@pytest.fixture(scope="session")
def chain() -> Iterator[Chain]:
    """A bare node; removed at the end whatever happened."""
    root = config.cache_root()
    keep_go_inside(root)
    workshop = Workshop(root, config.REPO / "results" / "logs" / time.strftime("chain-%Y%m%dT%H%M%S.log"))
    with Display() as display:
        kit = build_kit(workshop, display)
    node = Node(workshop, Podman(workshop), config.REHEARSAL_NODE)
    inventory.remove_hosts()
    node.create(kit.rootfs)
    try:
        node.start(kit.mirror)
        inventory.write_hosts(node)
        yield Chain(workshop, node)
    finally:
        inventory.remove_hosts()
        node.destroy()


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    """An inventory whose only node does not answer."""
    path: Path = tmp_path_factory.mktemp("inventory") / "hosts.yml"
    path.write_text("gpu_nodes: {hosts: {nowhere: {ansible_host: 127.0.0.1, ansible_port: 9, ansible_user: nobody}}}\n")
    return ("-i", str(path))
