"""Ctrl-C, SIGTERM and a closed terminal: all end a run the same way, with everything cleaned up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def catch_interrupts() -> None:
    """Let all of them raise KeyboardInterrupt in the main thread."""
    for sign in INTERRUPTS:
        signal.signal(sign, _interrupt)


def _interrupt(_sign: int, _frame: object) -> None:
    raise KeyboardInterrupt


@contextmanager
def undisturbed() -> Iterator[None]:
    """Cleaning up is not interrupted by a second Ctrl-C."""
    if threading.current_thread() is not threading.main_thread():
        # Signals come to the main thread only.
        yield
        return
    before = {sign: signal.signal(sign, signal.SIG_IGN) for sign in INTERRUPTS}
    try:
        yield
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)
