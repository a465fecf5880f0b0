"""scripts/verify.py: a document on standard output, a table on standard error, and the exit code of the verdict."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

script = importlib.import_module("verify")


def document(verdict: str) -> dict[str, Any]:
    check = {"name": "health", "object": "here", "seen": "this", "expected": "that", "verdict": verdict, "remedy": ""}
    return {"verdict": verdict, "checks": [check]}


@pytest.mark.parametrize(("verdict", "code"), [("pass", 0), ("fail", 1), ("cannot_tell", 2)])
def test_the_exit_code_is_the_verdict(monkeypatch, capsys, verdict: str, code: int) -> None:
    monkeypatch.setattr(script, "verify", lambda *args, **kwargs: document(verdict))
    assert script.main([]) == code
    printed = capsys.readouterr()
    assert json.loads(printed.out)["verdict"] == verdict
    assert printed.err.splitlines()[0].startswith("checked")


def test_arguments_reach_the_library(monkeypatch) -> None:
    seen: dict[str, Any] = {}

    def record(target: Any, groups: Any, **options: Any) -> dict[str, Any]:
        seen.update(target=target, groups=groups, labels=options["labels"], promised=options["promised"]())
        return document("pass")

    monkeypatch.setattr(script, "verify", record)
    script.main(["--only", "node", "dns", "--node", "gpu-1", "--allocatable", "4", "--label", "ground=a test"])
    assert (seen["groups"], seen["labels"], seen["promised"]) == (["node", "dns"], {"ground": "a test"}, 4)
    assert (seen["target"].node, seen["target"].service) == ("gpu-1", "vllm-qwen")


def test_without_a_cluster_nothing_can_be_told(capsys, tmp_path: Path) -> None:
    assert script.main(["--kubeconfig", str(tmp_path / "none")]) == 2
    assert json.loads(capsys.readouterr().out)["counts"] == {"pass": 0, "fail": 0, "cannot_tell": 3}
