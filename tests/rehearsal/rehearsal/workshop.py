"""Running commands and keeping what they build.

Everything a rehearsal builds is an *artifact*: a folder whose name carries the hash of all that went into it. The same
inputs are never built twice, changed inputs are never taken for the old ones, and a build that was killed leaves nothing
that looks finished.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path


class RehearsalError(Exception):
    """Something the rehearsal could not do: what was tried, what was seen, what to do next."""


class StoppedError(RehearsalError):
    """A command was not run because something else failed or the user asked to stop."""


class CommandError(RehearsalError):
    """A command ended with a non-zero code.

    :param argv: the command
    :param code: its exit code
    :param tail: the last lines it printed
    """

    def __init__(self, argv: Sequence[str], code: int, tail: str) -> None:
        self.argv, self.code, self.tail = list(argv), code, tail
        super().__init__(f"command failed with exit code {code}: {' '.join(argv)}\n{tail}")


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End a command and all that it has started: gently, and after two seconds not."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(2)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from sorted(p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        else:
            yield path


def digest(sources: Iterable[Path], extra: Iterable[str] = ()) -> str:
    """Hash the content of files and folders, their relative names, and further strings; 12 hex digits."""
    total = hashlib.sha256()
    for source in sources:
        for path in _files([source]):
            name = path.name if path == source else str(path.relative_to(source))
            total.update(f"{name}\0{path.stat().st_mode & 0o111}\0".encode())
            total.update(path.read_bytes())
    for text in extra:
        total.update(b"\0" + text.encode())
    return total.hexdigest()[:12]


@dataclass
class Workshop:
    """Where builds happen and how commands are run.

    :param root: the cache folder
    :param log_path: file that receives every command and its output
    """

    root: Path
    log_path: Path
    built: list[str] = field(default_factory=list)
    """Names of the artifacts that this process had to build (empty on a warm start)."""
    missing_remedy: str | None = None
    """When set, nothing is built: an artifact that is not there is an error with this remedy."""
    _processes: set[subprocess.Popen[bytes]] = field(default_factory=set)
    _process_lock: threading.Lock = field(default_factory=threading.Lock)
    _stopping: bool = False
    _lane: threading.local = field(default_factory=threading.local)
    _log_lock: threading.Lock = field(default_factory=threading.Lock)

    def log(self, text: str) -> None:
        """Append one line to the log, with the time."""
        self.log_path.parent.mkdir(parents=True, exist_ok=True)
        with self._log_lock, self.log_path.open("a", encoding="utf-8") as handle:
            handle.write(f"{time.strftime('%H:%M:%S')} {text.rstrip()}\n")

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
        timeout: float | None = None,
    ) -> str:
        """Run a command, keep its output in the log, and return its standard output.

        :param env: variables added to this process's environment
        :param timeout: seconds after which it is killed
        :raises CommandError: on a non-zero exit code, with the last 30 lines
        :raises RehearsalError: when it cannot be started or does not end in time
        """
        words = [str(word) for word in argv]
        self.log("$ " + " ".join(words))
        process = self._start(words, cwd, env, stdin)
        try:
            printed, complained = process.communicate(stdin, timeout)
        except subprocess.TimeoutExpired as error:
            _end_group(process)
            raise RehearsalError(f"{' '.join(words)} did not end within {timeout:.0f} s; see {self.log_path}") from error
        except BaseException:
            _end_group(process)
            raise
        finally:
            with self._process_lock:
                self._processes.discard(process)
        out, err = printed.decode(errors="replace"), complained.decode(errors="replace")
        for text in (out, err):
            if text.strip():
                self.log(text if len(text) < 20_000 else text[:10_000] + "\n[…]\n" + text[-10_000:])
        if process.returncode != 0:
            tail = "\n".join((err or out).strip().splitlines()[-30:])
            raise CommandError(words, process.returncode, tail)
        return out

    def _start(
        self, words: Sequence[str], cwd: Path | None, env: Mapping[str, str] | None, stdin: bytes | None
    ) -> subprocess.Popen[bytes]:
        with self._process_lock:
            if self._stopping:
                raise StoppedError(f"{words[0]} was not started: the rehearsal is being stopped")
            try:
                process = subprocess.Popen(
                    words,
                    cwd=cwd,
                    env={**os.environ, **(env or {})},
                    stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    # A group of its own: what the command has started in turn is ended with it.
                    start_new_session=True,
                )
            except OSError as error:
                raise RehearsalError(f"cannot start {words[0]}: {error.strerror}; is it installed and on the PATH?") from error
            self._processes.add(process)
        return process

    @contextmanager
    def stopping_together(self) -> Iterator[None]:
        """Within it, lanes share their fate: an error or an interrupt ends the commands of all of them.

        The threads of the lanes must end inside. Afterwards commands can be run again, to clean up.
        """
        try:
            yield
        finally:
            with self._process_lock:
                self._stopping = False

    def stop(self) -> None:
        """End all running commands and start no more until :meth:`stopping_together` is left."""
        with self._process_lock:
            self._stopping = True
            running = list(self._processes)
        for process in running:
            _end_group(process)

    def built_in_lane(self) -> int:
        """How many artifacts the calling thread has built."""
        return int(getattr(self._lane, "built", 0))

    @contextmanager
    def locked(self, name: str) -> Iterator[None]:
        """Hold a lock that other processes (another clone, a CI run) respect."""
        folder = self.root / "locks"
        folder.mkdir(parents=True, exist_ok=True)
        with (folder / f"{name}.lock").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield

    def artifact(
        self,
        name: str,
        make: Callable[[Path], None],
        *,
        sources: Iterable[Path] = (),
        extra: Iterable[str] = (),
    ) -> Path:
        """Return the folder of an artifact, building it when its inputs have changed.

        :param name: e.g. ``part-etcd``
        :param make: fills the (empty) folder it is given
        :param sources: files and folders whose content decides whether a build is due
        :param extra: strings that decide it too (versions, keys of artifacts it is made from)
        :returns: ``<root>/artifacts/<name>-<key>``
        """
        key = digest(sources, extra)
        home = self.root / "artifacts"
        final = home / f"{name}-{key}"
        if final.is_dir():
            return final
        if self.missing_remedy is not None:
            raise RehearsalError(f"{name} is not built, or is older than its sources in this checkout; {self.missing_remedy}")
        with self.locked(name):
            if final.is_dir():
                return final
            partial = home / f"{name}-{key}.partial"
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            make(partial)
            partial.rename(final)
            self.built.append(name)
            self._lane.built = self.built_in_lane() + 1
            earlier = re.compile(rf"{re.escape(name)}-[0-9a-f]{{12}}(\.partial)?")
            for old in home.iterdir():
                if old != final and earlier.fullmatch(old.name):
                    shutil.rmtree(old, ignore_errors=True)
        return final
