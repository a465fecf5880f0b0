"""What molecule's create and destroy call: the node of a role's scenario."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence

from . import config, inventory
from .build import build_kit
from .cli import keep_go_inside
from .interrupts import catch_interrupts
from .node import Node
from .podman import Podman
from .prepared import ROLES, Preparer
from .progress import Display
from .workshop import RehearsalError, Workshop

REMEDY = "molecule starts from what `scripts/rehearse --prepare` builds: run that first"


def create(workshop: Workshop, role: str) -> None:
    """Start the scenario's node for a role, from a prepared disk.

    :raises RehearsalError: when the parts were never built, with the remedy
    """
    with Display() as display:
        workshop.missing_remedy = REMEDY
        kit = build_kit(workshop, display)
        workshop.missing_remedy = None
        preparer = Preparer(workshop, kit)
        root = preparer.before(role, display)
        node = preparer.node()
        with display.stage(f"start {node.spec.name} for role {role}"):
            node.create(root)
            node.start(kit.mirror)
            inventory.write_scenario(node)


def destroy(workshop: Workshop) -> None:
    """Remove the scenario's node."""
    Node(workshop, Podman(workshop), config.MOLECULE_NODE).destroy()
    inventory.remove_hosts(inventory.SCENARIO / "hosts.yml")


def main(arguments: Sequence[str] | None = None) -> int:
    """``create ROLE`` or ``destroy``; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m rehearsal.scenario", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("create", help="start the node").add_argument("role", choices=ROLES)
    verbs.add_parser("destroy", help="remove the node")
    chosen = parser.parse_args(arguments)
    root = config.cache_root()
    keep_go_inside(root)
    catch_interrupts()
    workshop = Workshop(root, config.REPO / "results" / "logs" / time.strftime("scenario-%Y%m%dT%H%M%S.log"))
    try:
        if chosen.verb == "create":
            create(workshop, chosen.role)
        else:
            destroy(workshop)
    except RehearsalError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
