"""`scripts/rehearse`: from a bare node to an answering API, with one command."""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from . import config, inventory, report
from .build import Kit, build_kit
from .interrupts import catch_interrupts, undisturbed
from .node import Node
from .playbook import Outcome, run_playbook
from .podman import Podman
from .prepared import ROLES, Preparer
from .progress import Display, format_duration
from .workshop import CommandError, RehearsalError, Workshop

DESCRIPTION = """\
Make a disposable node with a simulated GPU, run site.yml against it over SSH, and end with a chat completion
answered by a real vLLM (on CPU) in a Pod on a real Kubernetes node. Everything it needs is built on the first start
and reused later. Exit codes: 0 pass, 1 fail, 2 cannot tell, 130 interrupted.
"""


RUNNING = Path("/run/gpunode/rehearsal.lock")
NODES = (config.REHEARSAL_NODE, config.MOLECULE_NODE)


def parser() -> argparse.ArgumentParser:
    """The command line of ``scripts/rehearse``."""
    made = argparse.ArgumentParser(prog="scripts/rehearse", description=DESCRIPTION)
    what = made.add_mutually_exclusive_group()
    what.add_argument(
        "--prepare", action="store_true", help="only build: parts, images and the prepared nodes that molecule starts from"
    )
    what.add_argument(
        "--bare", action="store_true", help="only bring up the bare node and leave it up (then: ansible-playbook site.yml)"
    )
    what.add_argument("--down", action="store_true", help="take a node that was kept down again; what was built stays")
    what.add_argument("--destroy", action="store_true", help="remove every trace: nodes, network, images and all that was built")
    made.add_argument("--keep", action="store_true", help="leave the node up and print how to reach it")
    made.add_argument("--verbose", action="store_true", help="print each task where there is no terminal")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; returns the exit code."""
    chosen = parser().parse_args(arguments)
    root = config.cache_root()
    log = config.REPO / "results" / "logs" / time.strftime("rehearse-%Y%m%dT%H%M%S.log")
    workshop = Workshop(root, log)
    keep_go_inside(root)
    code = 1
    catch_interrupts()
    try:
        with _alone(root), Display(verbose=chosen.verbose) as display:
            if chosen.down:
                code = take_down(workshop)
            elif chosen.destroy:
                code = destroy(workshop)
            elif chosen.prepare:
                code = prepare(workshop, display)
            else:
                code = rehearse(workshop, display, keep=chosen.keep, bare=chosen.bare)
    except RehearsalError as error:
        print(f"\n{error}", file=sys.stderr)
    except KeyboardInterrupt:
        up = ", ".join(spec.name for spec in NODES if Node(workshop, Podman(workshop), spec).running())
        print(f"\ninterrupted; {f'still up: {up}' if up else 'nothing was left running'}", file=sys.stderr)
        code = 130
    if log.is_file():
        print(f"full log: {log}", file=sys.stderr)
    return code


def keep_go_inside(root: Path) -> None:
    """Keep what Go fetches and compiles below the cache folder, so that --destroy finds all of it."""
    for name, folder in (("GOCACHE", "build"), ("GOMODCACHE", "modules")):
        os.environ[name] = str(root / "go" / folder)


@contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Only one rehearsal at a time: they share the node's name and address."""
    root.mkdir(parents=True, exist_ok=True)
    # For the whole machine: the node's address is the same whatever the cache.
    RUNNING.parent.mkdir(parents=True, exist_ok=True)
    with RUNNING.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise RehearsalError(
                f"another rehearsal is running on this machine (it holds {RUNNING}); wait for it, or end it with Ctrl-C"
            ) from None
        yield


def _node(workshop: Workshop) -> Node:
    return Node(workshop, Podman(workshop), config.REHEARSAL_NODE)


def rehearse(workshop: Workshop, display: Display, *, keep: bool, bare: bool) -> int:
    """Bring a bare node up and run site.yml on it."""
    started = time.monotonic()
    kit = build_kit(workshop, display)
    node = _node(workshop)
    done = False
    try:
        with display.stage("boot the bare node"):
            if node.running():
                display.line(f"{node.spec.name} was up: it is replaced by a bare one")
            inventory.remove_hosts()
            node.create(kit.rootfs)
            node.start(kit.mirror)
            inventory.write_hosts(node)
        if bare:
            done = True
            print(report.how_to_reach(node, kubeconfig=None))
            return 0
        since = time.time()
        outcome = _site(workshop, display)
        kubeconfig = _fetch_kubeconfig(node) if keep else None
        code = report.conclude(outcome, display, time.monotonic() - started, since)
        done = True
        if keep:
            print(report.how_to_reach(node, kubeconfig))
        return code
    finally:
        if not (done and (keep or bare)):
            with undisturbed():
                inventory.remove_hosts()
                node.destroy()


def _site(workshop: Workshop, display: Display) -> Outcome:
    with display.stage("ansible-playbook site.yml") as stage:

        def note(text: str, count: int) -> None:
            stage.note(text)
            stage.advance(count, None)

        return run_playbook(workshop, config.REPO / "site.yml", note=note)


def _fetch_kubeconfig(node: Node) -> Path | None:
    """Keep the node's kubeconfig with an address that works from here; None when the node has none."""
    try:
        text = node.ssh("sudo cat /etc/rancher/k3s/k3s.yaml").stdout
    except CommandError:
        return None
    path = node.home / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(text.replace("https://127.0.0.1:6443", f"https://{node.spec.address}:6443"))
    return path


def prepare(workshop: Workshop, display: Display) -> int:
    """Build everything, the prepared nodes included."""
    started = time.monotonic()
    kit: Kit = build_kit(workshop, display)
    Preparer(workshop, kit).before(ROLES[-1], display)
    built = ", ".join(workshop.built) or "nothing: all was there"
    print(f"prepared in {format_duration(time.monotonic() - started)}; built: {built}")
    return 0


def take_down(workshop: Workshop) -> int:
    """Remove the nodes; what was built stays."""
    podman = Podman(workshop)
    inventory.remove_hosts()
    for spec in NODES:
        node = Node(workshop, podman, spec)
        print(f"{spec.name}: {'taken down' if node.exists() else 'was not up'}")
        node.destroy()
    return 0


def destroy(workshop: Workshop) -> int:
    """Remove every trace of rehearsals from this machine, save Debian packages and this checkout's .venv and results."""
    take_down(workshop)
    podman = Podman(workshop)
    podman.command("network", "rm", "--force", config.NETWORK)
    shutil.rmtree(podman.run_root, ignore_errors=True)
    shutil.rmtree(workshop.root)
    for folder in (config.REPO / ".cache", config.REPO / ".ansible", *config.REPO.glob("roles/*/.ansible")):
        shutil.rmtree(folder, ignore_errors=True)
    print(f"removed: {workshop.root}")
    print(f"left: Debian packages, {config.REPO / '.venv'}, {config.REPO / 'results'}; kernel parameters until the next boot")
    return 0


if __name__ == "__main__":
    sys.exit(main())
