"""Showing what goes on: bars with elapsed time on a terminal, plain lines elsewhere; and the time of every stage."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column

ANNOUNCE_SECONDS = 1.0


@dataclass
class Stage:
    """One step of the rehearsal as it is shown.

    :param title: what it does, in a few words
    """

    title: str
    display: Display
    task: TaskID | None
    started: float = field(default_factory=time.monotonic)
    result: str = "done"
    """The word it ends with when it does not fail."""

    def note(self, text: str) -> None:
        """Say what the stage is at."""
        if self.task is not None and self.display.progress is not None:
            self.display.progress.update(self.task, note=text)
        elif text:
            self.display.line(f"    {text}", quiet=True)

    def advance(self, done: int, total: int | None) -> None:
        """Move the bar; a total that is not known yet leaves it pulsing."""
        if self.task is not None and self.display.progress is not None:
            self.display.progress.update(self.task, completed=done, total=total)


class Display:
    """Stages on stderr; what a program may read goes to stdout.

    :param verbose: also print the notes of stages where there is no terminal
    """

    def __init__(self, *, verbose: bool = False) -> None:
        self.console = Console(stderr=True, highlight=False)
        self.verbose = verbose
        self.durations: list[tuple[str, float]] = []
        self.progress: Progress | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Display:
        if self.console.is_terminal:
            self.progress = Progress(
                SpinnerColumn(finished_text="[green]✓"),
                # On a narrow terminal it is the note that gives way.
                TextColumn("{task.description}", table_column=Column(no_wrap=True, min_width=34)),
                BarColumn(bar_width=12, table_column=Column(min_width=12)),
                TimeElapsedColumn(table_column=Column(min_width=7)),
                TextColumn("[dim]{task.fields[note]}", table_column=Column(no_wrap=True, overflow="ellipsis", ratio=1)),
                expand=True,
                console=self.console,
            )
            self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self.progress is not None:
            self.progress.stop()
            self.progress = None

    def line(self, text: str, *, quiet: bool = False) -> None:
        """Print one line (``quiet``: only when verbose)."""
        if quiet and not self.verbose:
            return
        with self._lock:
            if self.progress is not None:
                self.progress.console.print(text, markup=False)
            else:
                print(text, file=sys.stderr, flush=True)

    @contextmanager
    def stage(self, title: str) -> Iterator[Stage]:
        """Show one stage while it runs; its duration is kept even when it fails."""
        task = self.progress.add_task(title, total=None, note="") if self.progress is not None else None
        stage = Stage(title, self, task)
        # Without a terminal only what takes a while is announced; the rest is one line at its end.
        announced = threading.Timer(ANNOUNCE_SECONDS, self.line, (f"… {title}",))
        if task is None:
            announced.start()
        try:
            yield stage
        except KeyboardInterrupt:
            stage.result = "interrupted"
            raise
        except BaseException:
            stage.result = "FAILED"
            raise
        finally:
            announced.cancel()
            self._end(stage)

    def _end(self, stage: Stage) -> None:
        took = time.monotonic() - stage.started
        failed = stage.result in {"FAILED", "interrupted"}
        with self._lock:
            self.durations.append((stage.title, took))
        if stage.task is not None and self.progress is not None:
            note = f"[red]{stage.result}" if failed else ("" if stage.result == "done" else stage.result)
            self.progress.update(stage.task, completed=1, total=1, note=note)
        else:
            self.line(f"{'✗' if failed else '✓'} {stage.title}: {stage.result} ({took:.1f} s)")


def format_duration(seconds: float) -> str:
    """Seconds as a person reads them: ``9.4 s``, ``3 min 05 s``."""
    return f"{seconds:.1f} s" if seconds < 60 else f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"
