"""`scripts/test`: everything that has to hold before a change lands."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from . import config
from .cli import keep_go_inside, take_down
from .interrupts import catch_interrupts, undisturbed
from .prepared import ROLES
from .progress import format_duration
from .workshop import Workshop

LIBRARY = ("plugins/module_utils", "tests/rehearsal/rehearsal")
GO_MODULES = ("k3s", "device-plugin", "pause")
"""Go modules of this project's own code, which have tests."""


@dataclass(frozen=True)
class Check:
    """One command of the suite.

    :param name: what is checked
    :param argv: the command
    :param folder: where it runs, relative to the repository
    """

    name: str
    argv: tuple[str, ...]
    folder: str = "."


def lint() -> list[Check]:
    """Static checks."""
    python = sys.executable
    return [
        Check("ruff check", (python, "-m", "ruff", "check", ".")),
        Check("ruff format", (python, "-m", "ruff", "format", "--check", ".")),
        Check("mypy", (python, "-m", "mypy", *LIBRARY)),
        Check("ansible-lint (production, offline)", ("ansible-lint", "--profile", "production", "--offline", "--strict", "-q")),
        *(Check(f"go vet {name}", ("go", "vet", "./..."), f"tests/rehearsal/go/{name}") for name in GO_MODULES),
    ]


def unit() -> list[Check]:
    """Tests that need no node."""
    return [
        Check("unit tests", (sys.executable, "-m", "pytest", "-q", "tests/unit")),
        *(Check(f"go test {name}", ("go", "test", "./..."), f"tests/rehearsal/go/{name}") for name in GO_MODULES),
    ]


def molecule(roles: Sequence[str] = ROLES) -> list[Check]:
    """A scenario for every role, after what it starts from is built."""
    prepare = Check("scripts/rehearse --prepare", (sys.executable, "-m", "rehearsal.cli", "--prepare"))
    return [prepare, *(Check(f"molecule {role}", ("molecule", "test"), f"roles/{role}") for role in roles)]


def rehearsal() -> list[Check]:
    """The whole chain on a fresh node, wrong inputs first, a second run last."""
    return [Check("rehearsal end to end", (sys.executable, "-m", "pytest", "-q", "-x", "--color=no", "tests/rehearsal/chain"))]


KINDS: dict[str, Callable[[], list[Check]]] = {"lint": lint, "unit": unit, "molecule": molecule, "rehearsal": rehearsal}


def run(check: Check) -> bool:
    """Run one check with its output shown; True when it passed."""
    print(f"\n=== {check.name}", flush=True)
    started = time.monotonic()
    environment = {
        **os.environ,
        "ANSIBLE_HOME": str(config.REPO / ".ansible"),
        "ANSIBLE_FORCE_COLOR": "0",
        "NO_COLOR": "1",
        # NVIDIA's bindings use what its header calls deprecated.
        "CGO_CFLAGS": "-O2 -Wno-deprecated-declarations",
    }
    code = _run_to_its_end(check.argv, config.REPO / check.folder, environment)
    verdict = "pass" if code == 0 else f"FAIL (exit code {code})"
    print(f"=== {check.name}: {verdict} in {format_duration(time.monotonic() - started)}")
    return code == 0


def _run_to_its_end(argv: Sequence[str], folder: Path, environment: Mapping[str, str]) -> int:
    """Run a command; when interrupted, let it clean up behind itself before the interrupt goes on.

    :returns: its exit code; 127 when it cannot be started
    """
    try:
        process = subprocess.Popen(argv, cwd=folder, env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        print(f"cannot start {argv[0]}: {error.strerror}")
        return 127
    try:
        return process.wait()
    except KeyboardInterrupt:
        with undisturbed():
            os.killpg(process.pid, signal.SIGINT)
            process.wait()
        raise


def parser() -> argparse.ArgumentParser:
    """The command line of ``scripts/test``."""
    made = argparse.ArgumentParser(prog="scripts/test", description=__doc__)
    for kind, maker in KINDS.items():
        made.add_argument(f"--{kind}", action="store_true", help=(maker.__doc__ or "").strip().rstrip("."))
    made.add_argument(
        "--role", choices=ROLES, action="append", default=[], help="with --molecule: only this role (may be repeated)"
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the chosen kinds of check, or all; every one is run even when one before it failed. Returns the exit code."""
    chosen = parser().parse_args(arguments)
    keep_go_inside(config.cache_root())
    kinds = [kind for kind in KINDS if getattr(chosen, kind)] or list(KINDS)
    checks = [check for kind in kinds for check in (molecule(chosen.role or ROLES) if kind == "molecule" else KINDS[kind]())]
    started = time.monotonic()
    catch_interrupts()
    try:
        failed = [check.name for check in checks if not run(check)]
    except KeyboardInterrupt:
        with undisturbed():
            take_down(Workshop(config.cache_root(), config.REPO / "results" / "logs" / "test.log"))
        print("interrupted; the nodes are taken down")
        return 130
    print(f"\n{format_duration(time.monotonic() - started)} in all")
    for name in failed:
        print(f"failed: {name}")
    print(f"{len(checks) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
