"""A node under test: what the end-to-end tests run on it, and what they see of it."""

from __future__ import annotations

from dataclasses import dataclass

from . import config
from .node import Node
from .playbook import Outcome, run_playbook
from .workshop import Workshop

FINGERPRINT = r"""sudo sh -c '
dpkg-query --show
find /etc /opt /usr/local /var/lib/rancher /var/lib/kubelet -xdev -printf "%p %s %t %m\n" 2>/dev/null | sort
# What only a log-in or a query starts is no change of the node.
systemctl list-units --plain --no-legend --state=running --type=service | cut -d" " -f1 | grep -Ev "^(user@|systemd-)"
'"""


@dataclass
class Chain:
    """The node under test and what was run on it."""

    workshop: Workshop
    node: Node

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
