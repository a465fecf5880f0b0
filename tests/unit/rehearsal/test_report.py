"""A user would lose: an honest exit code."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from rehearsal.playbook import Outcome
from rehearsal.progress import format_duration
from rehearsal.report import newest_verification, overall


@pytest.mark.parametrize(
    ("verdicts", "wanted"),
    [
        (["pass", "pass"], "pass"),
        (["pass", "cannot_tell"], "cannot_tell"),
        (["cannot_tell", "fail"], "fail"),
        ([], "cannot_tell"),
        (["something new"], "cannot_tell"),
    ],
)
def test_overall(verdicts: list[str], wanted: str) -> None:
    assert overall([{"verdict": verdict} for verdict in verdicts]) == wanted


def test_an_older_verification_is_not_taken_for_this_runs(tmp_path: Path) -> None:
    path = tmp_path / "run" / "host" / "verify.json"
    path.parent.mkdir(parents=True)
    path.write_text("{}")
    os.utime(path, (1000, 1000))
    assert newest_verification(tmp_path, since=1001) is None
    assert newest_verification(tmp_path, since=999) == path


def test_outcome_is_not_ok_when_canceled() -> None:
    assert not Outcome("canceled", 0, {}, [], 1.0).ok
    assert Outcome("successful", 0, {"n": {"changed": 2}, "m": {"changed": 1}}, [], 1.0).changed == 3


def test_durations() -> None:
    assert format_duration(9.44) == "9.4 s"
    assert format_duration(185.2) == "3 min 05 s"
