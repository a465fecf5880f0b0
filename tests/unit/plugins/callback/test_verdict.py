"""The callback: one table for each host, with the last verdict of each check."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.gpunode.serving.plugins.callback.verdict import CallbackModule


class Screen:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self.colour = ""

    def banner(self, text: str) -> None:
        self.lines.append(text)

    def display(self, text: str, color: str | None = None) -> None:
        self.lines.append(text)
        self.colour = color or self.colour


def check(name: str, verdict: str) -> dict[str, str]:
    return {"name": name, "object": "here", "seen": "this", "expected": "that", "verdict": verdict, "remedy": "Do it."}


def result(host: str, **values: Any) -> Any:
    return SimpleNamespace(host=SimpleNamespace(get_name=lambda: host), result=values)


@pytest.fixture
def screen() -> Screen:
    return Screen()


@pytest.fixture
def callback(screen: Screen) -> CallbackModule:
    made = CallbackModule()
    made._display = screen
    return made


def test_checks_of_all_tasks_come_in_one_table_for_each_host(callback, screen) -> None:
    callback.v2_runner_on_ok(result("a", checks=[check("health", "pass"), check("dns", "cannot_tell")]))
    callback.v2_runner_on_failed(result("b", checks=[check("health", "fail")]))
    callback.v2_playbook_on_stats(None)
    assert [line for line in screen.lines if line.startswith("VERDICT")] == ["VERDICT [a]", "VERDICT [b]"]
    assert "1 pass, 0 fail, 1 cannot tell" in screen.lines
    assert "    expected that. Do it." in screen.lines
    assert screen.colour == "red"


def test_a_check_made_twice_counts_with_its_last_verdict(callback, screen) -> None:
    callback.v2_runner_on_ok(result("a", checks=[check("health", "fail")]))
    callback.v2_runner_on_ok(result("a", checks=[check("health", "pass")]))
    callback.v2_playbook_on_stats(None)
    assert screen.lines[-1] == "1 pass, 0 fail, 0 cannot tell"
    assert screen.colour == "green"


def test_other_results_print_nothing(callback, screen) -> None:
    callback.v2_runner_on_ok(result("a", changed=True))
    callback.v2_runner_on_ok(result("a", checks="all", reason="another module's word"))
    callback.v2_playbook_on_stats(None)
    assert screen.lines == []
