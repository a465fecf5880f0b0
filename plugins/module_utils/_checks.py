"""Checks and their verdict: what was looked at, what was seen, and whether that is right. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

SCHEMA = "gpunode.serving/verify"
SCHEMA_VERSION = 1


class Verdict(StrEnum):
    """Outcome of a check. What could not be looked at is never a pass."""

    PASS = "pass"
    FAIL = "fail"
    CANNOT_TELL = "cannot_tell"


EXIT_CODES = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.CANNOT_TELL: 2}


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    :param name: what was checked
    :param object: on which object
    :param seen: what was seen, or why nothing could be seen
    :param expected: what a pass needs
    :param remedy: what to do next, empty for a pass
    """

    name: str
    object: str
    seen: str
    expected: str
    verdict: Verdict
    remedy: str = ""

    @classmethod
    def judged(cls, name: str, target: str, good: bool, *, seen: str, expected: str, remedy: str) -> Check:
        """A check whose object could be looked at."""
        return cls(name, target, seen, expected, Verdict.PASS if good else Verdict.FAIL, "" if good else remedy)

    @classmethod
    def open(cls, name: str, target: str, *, seen: str, expected: str, remedy: str) -> Check:
        """A check that could not be made."""
        return cls(name, target, seen, expected, Verdict.CANNOT_TELL, remedy)


def overall(checks: Iterable[Check]) -> Verdict:
    """One failure fails all; otherwise one open check leaves all open. Nothing checked is nothing known."""
    verdicts = {check.verdict for check in checks}
    for worst in (Verdict.FAIL, Verdict.CANNOT_TELL):
        if worst in verdicts:
            return worst
    return Verdict.PASS if verdicts else Verdict.CANNOT_TELL


def document(
    checks: Sequence[Check],
    *,
    subject: Mapping[str, str],
    versions: Mapping[str, str],
    labels: Mapping[str, str],
    taken_at: str,
    completion: str,
) -> dict[str, Any]:
    """The result document, schema ``gpunode.serving/verify`` version 1.

    :param subject: what was checked (node, namespace, service, model)
    :param versions: versions that were seen; what was not seen is left out
    :param labels: what the caller knows about the ground the result stands on
    :param taken_at: time of the verdict, ISO 8601 in UTC
    :param completion: text of the first chat completion, empty when there was none
    """
    return {
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "taken_at": taken_at,
        "labels": dict(labels),
        "subject": dict(subject),
        "versions": dict(versions),
        "verdict": overall(checks).value,
        "counts": {verdict.value: sum(check.verdict is verdict for check in checks) for verdict in Verdict},
        "checks": as_data(checks),
        "completion": completion,
    }


def as_data(checks: Iterable[Check]) -> list[dict[str, str]]:
    """Checks as plain data."""
    return [{**asdict(check), "verdict": check.verdict.value} for check in checks]
