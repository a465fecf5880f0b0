"""One bare node for the whole chain; the tests of this folder run on it in the order in which they stand."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rehearsal import config, inventory
from rehearsal.build import build_kit
from rehearsal.chain import Chain
from rehearsal.cli import keep_go_inside
from rehearsal.interrupts import catch_interrupts, undisturbed
from rehearsal.node import Node
from rehearsal.podman import Podman
from rehearsal.progress import Display
from rehearsal.workshop import Workshop


@pytest.fixture(scope="session")
def chain() -> Iterator[Chain]:
    """A bare node; removed at the end whatever happened."""
    root = config.cache_root()
    keep_go_inside(root)
    catch_interrupts()
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
        with undisturbed():
            inventory.remove_hosts()
            node.destroy()


@pytest.fixture(scope="session")
def elsewhere(tmp_path_factory: pytest.TempPathFactory) -> Sequence[str]:
    """An inventory whose only node does not answer."""
    path: Path = tmp_path_factory.mktemp("inventory") / "hosts.yml"
    path.write_text("gpu_nodes: {hosts: {nowhere: {ansible_host: 127.0.0.1, ansible_port: 9, ansible_user: nobody}}}\n")
    return ("-i", str(path))
