"""What a person reads at the end of a rehearsal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from . import config
from .node import Node
from .playbook import Outcome
from .progress import Display, format_duration

VERDICT_STYLES = {"pass": "green", "fail": "red", "cannot_tell": "yellow"}
EXIT_CODES = {"pass": 0, "fail": 1, "cannot_tell": 2}


def newest_verification(results: Path, since: float) -> Path | None:
    """The verification document written last, if it is not older than ``since`` (seconds since the epoch)."""
    found = [path for path in results.glob("*/*/verify.json") if path.stat().st_mtime >= since]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def overall(checks: Sequence[Mapping[str, Any]]) -> str:
    """The verdict over several checks: one failure fails, one doubt is a doubt, none at all is a doubt too."""
    verdicts = {check["verdict"] for check in checks}
    if "fail" in verdicts:
        return "fail"
    return "pass" if verdicts == {"pass"} else "cannot_tell"


def checks_table(checks: Sequence[Mapping[str, Any]]) -> Table:
    """What was checked, what was seen, and the verdict."""
    table = Table(title="Verification", title_justify="left")
    for heading in ("checked", "on", "seen", "verdict"):
        table.add_column(heading)
    for check in checks:
        # As text: an answer may hold what rich takes for markup.
        cells = [Text(str(check.get(name, ""))) for name in ("name", "object", "seen")]
        table.add_row(*cells, check["verdict"].replace("_", " "), style=VERDICT_STYLES.get(check["verdict"]))
    return table


def conclude(outcome: Outcome, display: Display, seconds: float, since: float) -> int:
    """Print durations, recap and verdict; returns the exit code.

    :param seconds: wall time of everything
    :param since: when the playbook was started (seconds since the epoch)
    """
    console = Console(stderr=True, highlight=False)
    times = Table(title="Durations (stages of two lanes overlap)", title_justify="left")
    times.add_column("stage")
    times.add_column("time", justify="right")
    for title, took in display.durations:
        if took >= 0.5:
            times.add_row(title, format_duration(took))
    times.add_row("in all", format_duration(seconds), style="bold")
    console.print(times)
    console.print(outcome.recap or f"ansible-playbook ended as {outcome.status}", markup=False)
    for failure in outcome.failures:
        console.print(f"failed: {failure}", markup=False, style="red")
    path = newest_verification(config.REPO / "results", since)
    if path is None:
        return 1 if not outcome.ok else 2
    document = json.loads(path.read_text(encoding="utf-8"))
    if document.get("completion"):
        console.print(f"\nThe model said: {document['completion']!r}", markup=False)
        console.print(
            "(real vLLM on CPU with a tiny random model: the path is proven, the words mean nothing; the GPU is simulated)"
        )
    console.print(checks_table(document["checks"]))
    console.print(f"verification: {path.relative_to(config.REPO)}", markup=False)
    return 1 if not outcome.ok else EXIT_CODES[overall(document["checks"])]


def how_to_reach(node: Node, kubeconfig: Path | None) -> str:
    """Commands that reach a node that was left up."""
    lines = [
        f"node {node.spec.name} is up at {node.spec.address}:",
        f"  ssh:        {' '.join(node.ssh_command())}",
        "  ansible:    . .venv/bin/activate && ansible-playbook site.yml",
    ]
    if kubeconfig is not None:
        lines.append(f"  kubectl:    KUBECONFIG={kubeconfig} (server https://{node.spec.address}:6443)")
    lines.append("  take down:  scripts/rehearse --down")
    return "\n".join(lines)
