"""Running a playbook with ansible-runner: events for the display, a log file, and an end that ends everything."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import config
from .interrupts import undisturbed
from .workshop import RehearsalError, Workshop

CANCEL_SECONDS = 10


@dataclass
class Outcome:
    """How a playbook ended.

    :param status: ansible-runner's word (``successful``, ``failed``, ``canceled``, …)
    :param rc: ansible-playbook's exit code
    :param stats: host → counters of the recap (``ok``, ``changed``, ``failures``, ``dark``, …)
    :param failures: one ``task: message`` for each failure on a host
    :param seconds: wall time
    """

    status: str
    rc: int | None
    stats: dict[str, dict[str, int]]
    failures: list[str]
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether ansible-playbook ended with success."""
        return self.rc == 0 and self.status == "successful"

    @property
    def changed(self) -> int:
        """Changed tasks over all hosts."""
        return sum(counters["changed"] for counters in self.stats.values())

    @property
    def recap(self) -> str:
        """One line a host, like ansible-playbook's own recap."""
        return "\n".join(
            f"{host}: " + " ".join(f"{name}={value}" for name, value in counters.items())
            for host, counters in sorted(self.stats.items())
        )


@dataclass
class _Listener:
    """Collects what the events tell."""

    note: Callable[[str, int], None]
    log: Callable[[str], None]
    tasks: int = 0
    failures: list[str] = field(default_factory=list)
    counters: dict[str, dict[str, int]] = field(default_factory=dict)

    def __call__(self, event: dict[str, Any]) -> bool:
        if event.get("stdout"):
            self.log(event["stdout"])
        kind, data = event.get("event"), event.get("event_data") or {}
        if kind == "playbook_on_task_start":
            self.tasks += 1
            self.note(str(data.get("name", "")), self.tasks)
        elif kind in {"runner_on_failed", "runner_on_unreachable"} and not data.get("ignore_errors"):
            result = data.get("res") or {}
            message = result.get("msg") or result.get("stderr") or "no message"
            self.failures.append(f"{data.get('task')}: {message}")
        elif kind == "playbook_on_stats":
            self.counters = _recap(data)
        return True


def _recap(data: dict[str, Any]) -> dict[str, dict[str, int]]:
    names = ("ok", "changed", "dark", "failures", "skipped", "rescued", "ignored")
    hosts = set().union(*(data.get(name, {}) for name in names))
    labels = {"dark": "unreachable", "failures": "failed"}
    return {host: {labels.get(name, name): int(data.get(name, {}).get(host, 0)) for name in names} for host in hosts}


def run_playbook(
    workshop: Workshop,
    playbook: Path,
    *,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    note: Callable[[str, int], None] = lambda _text, _count: None,
) -> Outcome:
    """Run a playbook of this project with its own ansible.cfg.

    :param arguments: further words for ansible-playbook
    :param environment: variables added to ansible-playbook's environment
    :param note: called with the name of each task and how many have begun
    :raises KeyboardInterrupt: when interrupted, after ansible-playbook has ended
    """
    import ansible_runner

    data = workshop.root / "runner" / f"{os.getpid()}-{time.monotonic_ns()}"
    data.mkdir(parents=True)
    listener = _Listener(note, workshop.log)
    started = time.monotonic()
    stop = threading.Event()
    found: list[Any] = []

    # Waited for by an event: a join that is interrupted takes a thread that still runs for ended (Python 3.11).
    ended = threading.Event()

    def work() -> None:
        try:
            found.append(
                ansible_runner.run(
                    private_data_dir=str(data),
                    project_dir=str(config.REPO),
                    playbook=str(playbook),
                    cmdline=shlex.join(arguments),
                    envvars={**_environment(), **(environment or {})},
                    event_handler=listener,
                    cancel_callback=stop.is_set,
                    quiet=True,
                    settings={"suppress_env_files": True},
                )
            )
        finally:
            ended.set()

    threading.Thread(target=work, daemon=True).start()
    try:
        while not ended.wait(0.2):
            pass
    except KeyboardInterrupt:
        with undisturbed():
            _end_gently(ended)
            stop.set()
            ended.wait(CANCEL_SECONDS)
        raise
    finally:
        shutil.rmtree(data, ignore_errors=True)
    if not found:
        raise RehearsalError(
            f"ansible-runner did not run {playbook}; what it said stands above. The full log is {workshop.log_path}"
        )
    result = found[0]
    return Outcome(result.status, result.rc, listener.counters, listener.failures, time.monotonic() - started)


def _environment() -> dict[str, str]:
    return {
        "ANSIBLE_CONFIG": str(config.REPO / "ansible.cfg"),
        "ANSIBLE_HOME": str(config.REPO / ".ansible"),
        "ANSIBLE_NOCOLOR": "1",
    }


def _end_gently(ended: threading.Event) -> None:
    """Ask ansible-playbook to end by itself: its workers are in sessions of their own and a killed parent leaves them behind."""
    for pid in _children("ansible-playbook"):
        os.kill(pid, signal.SIGTERM)
    ended.wait(CANCEL_SECONDS)


def _children(name: str) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rsplit(")", 1)[1].split()[1])
            words = (stat.parent / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if parent == os.getpid() and any(Path(word.decode(errors="replace")).name == name for word in words[:2]):
            found.append(int(stat.parent.name))
    return found
