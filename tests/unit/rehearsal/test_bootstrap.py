"""A user would lose: being told at the start what is missing, all of it, with the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from rehearsal import bootstrap, config


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("go version go1.26.8 linux/amd64", (1, 26)),
        ("go version go1.27rc1 linux/amd64", (1, 27)),
        ("go version devel +abc linux/amd64", None),
        ("", None),
    ],
)
def test_go_version(text: str, wanted: tuple[int, int] | None) -> None:
    assert bootstrap.parse_go_version(text) == wanted


def test_all_problems_are_named_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(bootstrap.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(bootstrap, "_go_version", lambda: (1, 25))
    monkeypatch.setattr(bootstrap, "missing_packages", lambda: ["podman"])
    monkeypatch.setattr(bootstrap.shutil, "which", lambda name: None)
    monkeypatch.setattr(bootstrap, "free_gb", lambda path: 20.0)
    monkeypatch.setenv("GPUNODE_CACHE", str(tmp_path))
    seen = [problem.seen for problem in bootstrap.find_problems(needs_node=True)]
    assert [text.split(";")[0] for text in seen] == [
        "Go 1.25",
        "not root",
        "missing: podman",
        f"20 GB free for {tmp_path / 'gpunode'}",
    ]
    assert all(problem.remedy for problem in bootstrap.find_problems(needs_node=True))


def test_warm_cache_needs_less_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GPUNODE_CACHE", str(tmp_path))
    monkeypatch.setattr(bootstrap, "free_gb", lambda path: 20.0)
    cold = [problem.seen for problem in bootstrap.find_problems(needs_node=True) if "GB free" in problem.seen]
    for name in ("image-vllm-0123456789ab", "part-kubernetes-0123456789ab"):
        (tmp_path / "gpunode" / "artifacts" / name).mkdir(parents=True)
    warm = [problem.seen for problem in bootstrap.find_problems(needs_node=True) if "GB free" in problem.seen]
    assert len(cold) == 1
    assert warm == []


def test_only_the_wanted_stanza_is_taken_from_the_lock() -> None:
    wanted = "uv==0.13.9 \\\n    --hash=sha256:bb \\\n    --hash=sha256:cc\n"
    lock = f"uvicorn==1 \\\n    --hash=sha256:aa\n{wanted}yamllint==1 \\\n    --hash=sha256:dd\n"
    assert bootstrap.locked_requirement(lock, "uv") == wanted
    with pytest.raises(KeyError):
        bootstrap.locked_requirement(lock, "pip")


def test_the_node_gets_the_uv_of_the_controller() -> None:
    lock = (config.REPO / "requirements.txt").read_text()
    node = (config.REPO / "roles" / "node_baseline" / "files" / "uv.txt").read_text()
    assert node == bootstrap.locked_requirement(lock, "uv")


def test_the_lock_holds_one_ansible_for_each_python() -> None:
    lock = (config.REPO / "requirements.txt").read_text()
    assert "ansible-core==2.19" in lock
    assert "ansible-core==2.21" in lock
    assert bootstrap.locked_requirement(lock, "uv").count("--hash=") > 1


@pytest.mark.parametrize(
    ("words", "wanted"),
    [([], True), (["--lint"], False), (["--lint", "--unit"], False), (["--unit", "--molecule"], True), (["--rehearsal"], True)],
)
def test_lint_and_unit_tests_need_no_root(words: list[str], wanted: bool) -> None:
    assert bootstrap.suite_needs_node(words) is wanted
