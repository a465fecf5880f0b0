"""Verdicts, the result document, and the table."""

from __future__ import annotations

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils._checks import (
    EXIT_CODES,
    Check,
    Verdict,
    as_data,
    document,
    overall,
)
from ansible_collections.gpunode.serving.plugins.module_utils._table import table, tally

GOOD = Check.judged("health", "endpoint a", True, seen="HTTP 200", expected="HTTP 200", remedy="See the log.")
BAD = Check.judged("models", "endpoint a", False, seen="no model", expected="model tiny", remedy="See the log.")
OPEN = Check.open("dns", "service", seen="check mode creates no Pod", expected="to be checked", remedy="Run without check mode.")


@pytest.mark.parametrize(
    ("checks", "verdict", "code"),
    [
        ([GOOD], Verdict.PASS, 0),
        ([GOOD, BAD, OPEN], Verdict.FAIL, 1),
        ([GOOD, OPEN], Verdict.CANNOT_TELL, 2),
        ([], Verdict.CANNOT_TELL, 2),
    ],
)
def test_the_worst_verdict_counts_and_nothing_checked_is_nothing_known(checks: list[Check], verdict: Verdict, code: int) -> None:
    assert overall(checks) is verdict
    assert EXIT_CODES[verdict] == code


def test_a_pass_needs_no_remedy() -> None:
    assert GOOD.remedy == ""
    assert BAD.remedy == "See the log."


def test_the_document_names_its_schema_and_counts() -> None:
    made = document(
        [GOOD, BAD, OPEN],
        subject={"service": "s"},
        versions={"vllm": "0.32.0"},
        labels={"ground": "a test"},
        taken_at="2026-12-01T00:00:00+00:00",
        completion="hello",
    )
    assert (made["schema"], made["schema_version"], made["verdict"]) == ("gpunode.serving/verify", 1, "fail")
    assert made["counts"] == {"pass": 1, "fail": 1, "cannot_tell": 1}
    assert made["labels"] == {"ground": "a test"}
    assert [set(check) for check in made["checks"]] == [{"name", "object", "seen", "expected", "verdict", "remedy"}] * 3


def test_the_table_shows_every_check_and_what_to_do() -> None:
    lines = table(as_data([GOOD, BAD, OPEN]))
    assert lines[0].split() == ["checked", "on", "seen", "verdict"]
    assert lines[2].split() == ["health", "endpoint", "a", "HTTP", "200", "pass"]
    assert lines[4] == "    expected model tiny. See the log."
    assert lines[-2].endswith("cannot tell")
    assert tally(as_data([GOOD, BAD, OPEN])) == "1 pass, 1 fail, 1 cannot tell"


def test_long_text_is_wrapped_in_its_column() -> None:
    long = Check.judged("x", "y", True, seen="word " * 30, expected="", remedy="")
    lines = table(as_data([long]))
    assert max(len(line) for line in lines) <= 100
    assert sum(line.count("word") for line in lines) == 30


def test_no_checks_no_table() -> None:
    assert table([]) == []
