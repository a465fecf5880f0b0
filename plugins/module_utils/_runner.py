"""Running a command on the node, as a seam."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Completed:
    """What a finished command left.

    :param rc: exit code; 127 when the program does not exist
    :param out: standard output
    :param err: standard error
    """

    rc: int
    out: str
    err: str


class Runner(Protocol):
    """Runs a command to its end."""

    def run(self, argv: Sequence[str]) -> Completed: ...
