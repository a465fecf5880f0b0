"""A user would lose: a build that is silently stale, and a half-built one that is taken for whole."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rehearsal.workshop import CommandError, RehearsalError, StoppedError, Workshop, digest


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path / "cache", tmp_path / "log")


def fill(text: str):
    return lambda folder: (folder / "out").write_text(text)


def test_same_inputs_are_built_once(workshop: Workshop, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("a")
    first = workshop.artifact("thing", fill("1"), sources=[source])
    second = workshop.artifact("thing", fill("2"), sources=[source])
    assert first == second
    assert (second / "out").read_text() == "1"
    assert workshop.built == ["thing"]


def test_changed_input_is_built_anew_and_the_old_one_removed(workshop: Workshop, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_text("a")
    first = workshop.artifact("thing", fill("1"), sources=[source])
    neighbour = workshop.artifact("thing-two", fill("n"))
    source.write_text("b")
    second = workshop.artifact("thing", fill("2"), sources=[source])
    assert (second / "out").read_text() == "2"
    assert not first.exists()
    assert neighbour.exists(), "an artifact whose name begins alike is another one"


def test_failed_build_leaves_nothing_that_looks_finished(workshop: Workshop) -> None:
    def fail(folder: Path) -> None:
        (folder / "half").touch()
        raise RehearsalError("broken")

    with pytest.raises(RehearsalError, match="broken"):
        workshop.artifact("thing", fail)
    assert (workshop.artifact("thing", fill("whole")) / "out").read_text() == "whole"
    assert not (workshop.artifact("thing", fill("again")) / "half").exists()


def test_executable_bit_and_file_name_count(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    folder.mkdir()
    (folder / "x").write_text("1")
    before = digest([folder])
    (folder / "x").chmod(0o755)
    changed = digest([folder])
    (folder / "x").rename(folder / "y")
    assert len({before, changed, digest([folder])}) == 3


def test_missing_artifact_names_the_remedy(workshop: Workshop) -> None:
    workshop.missing_remedy = "run scripts/rehearse --prepare first"
    with pytest.raises(RehearsalError, match=r"^part-etcd is not built.*run scripts/rehearse --prepare first$"):
        workshop.artifact("part-etcd", fill("1"))


def test_failed_command_shows_its_last_words_and_code(workshop: Workshop) -> None:
    with pytest.raises(CommandError) as caught:
        workshop.run(["sh", "-c", "echo out; echo reason >&2; exit 3"])
    assert caught.value.code == 3
    assert "reason" in str(caught.value)
    assert "reason" in workshop.log_path.read_text()


def test_unknown_command_is_named(workshop: Workshop) -> None:
    with pytest.raises(RehearsalError, match="cannot start no-such-command"):
        workshop.run(["no-such-command"])


def runs(pid: str) -> bool:
    """Whether a process is there and not only waits for its parent to take note of its end."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_stopping_ends_what_runs_with_all_it_has_started(workshop: Workshop, tmp_path: Path) -> None:
    mark = tmp_path / "grandchild"
    with workshop.stopping_together(), ThreadPoolExecutor() as pool:
        lane = pool.submit(workshop.run, ["sh", "-c", f"sh -c 'echo $$ > {mark}; exec sleep 600' & wait"])
        while not (mark.exists() and mark.read_text().strip()):
            assert not lane.done()
        workshop.stop()
        with pytest.raises(CommandError):
            lane.result()
        with pytest.raises(StoppedError, match="true was not started"):
            workshop.run(["true"])
    give_up = time.monotonic() + 60
    while runs(mark.read_text().strip()):
        assert time.monotonic() < give_up
    workshop.run(["true"])


def test_a_command_that_hangs_is_ended(workshop: Workshop) -> None:
    with pytest.raises(RehearsalError, match="did not end within 0 s"):
        workshop.run(["sleep", "600"], timeout=0.1)
