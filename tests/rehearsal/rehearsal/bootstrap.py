"""What must be there before anything else of the rehearsal can run: stdlib only, any Python 3 can read it.

Checks the machine, installs Debian packages, makes the virtual environment from the hash lock, and hands over to it.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from . import config

MIN_PYTHON = (3, 11)
MIN_GO = (1, 26)
COLD_DISK_GB = 35
"""Free space that a first run needs: parts, images and the node's copy of them."""
WARM_DISK_GB = 14
"""Free space that a later run needs: one node with the serving image unpacked."""

PACKAGES = {
    "podman": "podman",
    "runc": "runc",
    "/usr/lib/podman/netavark": "netavark",
    "mmdebstrap": "mmdebstrap",
    "dpkg-scanpackages": "dpkg-dev",
    "apt-ftparchive": "apt-utils",
    "gpg": "gpg",
    "ssh": "openssh-client",
    "zstd": "zstd",
    "gcc": "gcc",
    "nm": "binutils",
    "/usr/share/keyrings/debian-archive-keyring.gpg": "debian-archive-keyring",
    "pkg-config": "pkg-config",
    "/usr/include/stdlib.h": "libc6-dev",
    "/usr/include/seccomp.h": "libseccomp-dev",
    "iptables": "iptables",
    config.CA_BUNDLE.as_posix(): "ca-certificates",
}
"""Command (or file) that must be there, and the Debian package that brings it."""


@dataclass(frozen=True)
class Problem:
    """Something missing that cannot be installed from here."""

    seen: str
    remedy: str


def missing_packages() -> list[str]:
    """Debian packages whose command or file is not on this machine."""
    venv = {} if importlib.util.find_spec("ensurepip") else {"ensurepip": "python3-venv"}
    wanted = {**PACKAGES, **venv}
    found = {name: Path(name).exists() if name.startswith("/") else shutil.which(name) is not None for name in wanted}
    return sorted({package for name, package in wanted.items() if not found[name]})


def parse_go_version(text: str) -> tuple[int, int] | None:
    """``go version go1.26.8 linux/amd64`` → ``(1, 26)``; None when it is no such line."""
    match = re.search(r"\bgo(\d+)\.(\d+)", text)
    return (int(match[1]), int(match[2])) if match else None


def _go_version() -> tuple[int, int] | None:
    if shutil.which("go") is None:
        return None
    env = {**os.environ, "GOTOOLCHAIN": "local"}
    done = subprocess.run(["go", "version"], capture_output=True, text=True, check=False, env=env)
    return parse_go_version(done.stdout)


def free_gb(path: Path) -> float:
    """Free space of the file system that holds (or will hold) ``path``, in GB."""
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free / 1e9


def find_problems(needs_node: bool) -> list[Problem]:
    """All that this machine lacks and that no package installs, each with its remedy.

    :param needs_node: False for what needs no container (lint, unit tests)
    """
    problems: list[Problem] = []
    if sys.version_info[:2] < MIN_PYTHON:
        problems.append(
            Problem(
                f"Python {platform.python_version()} at {sys.executable}; {MIN_PYTHON[0]}.{MIN_PYTHON[1]} or newer is needed",
                "put a newer python3 first on the PATH, or start with it: python3.12 scripts/rehearse",
            )
        )
    go = _go_version()
    if go is None or go < MIN_GO:
        seen = "no Go on the PATH" if go is None else f"Go {go[0]}.{go[1]}"
        problems.append(
            Problem(
                f"{seen}; {MIN_GO[0]}.{MIN_GO[1]} or newer builds the Kubernetes parts",
                "install it from https://go.dev/dl and put its bin folder on the PATH",
            )
        )
    if not needs_node:
        return problems
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        problems.append(
            Problem(
                f"{platform.system()} on {platform.machine()}; the node needs Linux on x86_64",
                "use a Linux machine or VM (a cloud VM with 2 cores and 8 GB does)",
            )
        )
        return problems
    if os.geteuid() != 0:
        problems.append(
            Problem(
                "not root; systemd, Kubernetes and containerd in a container need a privileged one",
                "run it with sudo on a machine that may be used for this (sudo -E scripts/rehearse)",
            )
        )
    absent = missing_packages()
    if absent and shutil.which("apt-get") is None:
        problems.append(
            Problem(
                f"missing: {', '.join(absent)}; and no apt-get to install them",
                "install them with this system's package manager (names are Debian's)",
            )
        )
    root = config.cache_root()
    warm = any((root / "artifacts").glob("image-vllm-*")) and any((root / "artifacts").glob("part-kubernetes-*"))
    need = WARM_DISK_GB if warm else COLD_DISK_GB
    if free_gb(root) < need:
        problems.append(
            Problem(
                f"{free_gb(root):.0f} GB free for {root}; {need} GB are needed",
                "free some, or name a folder on a larger disk: GPUNODE_CACHE=/mnt/big scripts/rehearse",
            )
        )
    return problems


def say(text: str, started: float | None = None) -> None:
    """One line on stderr, with the seconds it took."""
    took = "" if started is None else f"  ({time.monotonic() - started:.1f} s)"
    print(f"{text}{took}", file=sys.stderr, flush=True)


def install_packages(names: list[str]) -> None:
    """Install Debian packages; the log of apt is shown only when it fails."""
    started = time.monotonic()
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for argv in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *names]):
        done = subprocess.run(argv, capture_output=True, text=True, env=env, check=False)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(argv)} failed:\n{done.stdout[-1500:]}{done.stderr[-1500:]}\nMend apt and start again.")
    say(f"Debian packages installed: {' '.join(names)}", started)


def locked_requirement(lock: str, name: str) -> str:
    """The stanza of one package in a pip lock file, hashes included.

    :raises KeyError: when the lock does not have it
    """
    match = re.search(rf"^{re.escape(name)}==.*?(?=^\S|\Z)", lock, re.MULTILINE | re.DOTALL)
    if match is None:
        raise KeyError(f"{name} is not in the lock")
    return match[0]


def _is_of_this_python(venv: Path) -> bool:
    """Whether the environment is there and made with the Python that runs this."""
    settings = venv / "pyvenv.cfg"
    return settings.is_file() and f"version = {platform.python_version()}" in settings.read_text().splitlines()


def ensure_venv(repo: Path) -> Path:
    """Make or refresh ``.venv`` from requirements.txt; returns its interpreter."""
    venv, lock_path = repo / ".venv", repo / "requirements.txt"
    lock = lock_path.read_text(encoding="utf-8")
    wanted = hashlib.sha256(f"{sys.version_info[:3]}\n{lock}".encode()).hexdigest()
    stamp, python = venv / "requirements.sha256", venv / "bin" / "python"
    if stamp.is_file() and stamp.read_text() == wanted and python.exists():
        return python
    started = time.monotonic()
    if sys.version_info < (3, 12):
        say(
            f"note: Python {platform.python_version()} gets ansible-core 2.19, which does not know Ubuntu 26.04's Python 3.14 "
            "on a node; with Python 3.12 or newer it is 2.21"
        )
    if not _is_of_this_python(venv):
        shutil.rmtree(venv, ignore_errors=True)
        made = subprocess.run([sys.executable, "-m", "venv", str(venv)], capture_output=True, text=True, check=False)
        if made.returncode != 0:
            shutil.rmtree(venv, ignore_errors=True)
            raise SystemExit(
                f"{sys.executable} cannot make a virtual environment:\n{made.stdout}{made.stderr}\n"
                "On Debian and Ubuntu: apt-get install python3-venv"
            )
    uv_lock = venv / "uv.lock.txt"
    uv_lock.write_text(locked_requirement(lock, "uv"), encoding="utf-8")
    for argv in (
        [
            str(python),
            "-m",
            "pip",
            "install",
            "-q",
            "--disable-pip-version-check",
            "--no-deps",
            "--require-hashes",
            "-r",
            str(uv_lock),
        ],
        [
            str(python),
            "-m",
            "uv",
            "pip",
            "sync",
            "-q",
            "--python",
            str(python),
            "--require-hashes",
            "--compile-bytecode",
            str(lock_path),
        ],
    ):
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(
                f"{' '.join(argv)} failed:\n{done.stdout[-1500:]}{done.stderr[-3000:]}\nMend the cause and start again."
            )
    stamp.write_text(wanted)
    say("virtual environment .venv made from requirements.txt", started)
    return python


def suite_needs_node(arguments: list[str]) -> bool:
    """Whether what ``scripts/test`` was asked for runs containers: all but lint and unit tests alone."""
    kinds = {word for word in arguments if word.startswith("--")}
    return not kinds or bool(kinds - {"--lint", "--unit"})


def main(module: str, arguments: list[str], *, needs_node: bool = True) -> None:
    """Make the machine ready, then replace this process with ``python -m module`` of the virtual environment."""
    asks_help = bool({"-h", "--help"} & set(arguments))
    problems = find_problems(needs_node and not asks_help)
    if problems:
        lines = [f"  - {problem.seen}\n    → {problem.remedy}" for problem in problems]
        raise SystemExit("This machine cannot run it yet:\n" + "\n".join(lines))
    if needs_node and not asks_help:
        absent = missing_packages()
        if absent:
            install_packages(absent)
    python = ensure_venv(config.REPO)
    paths = [str(config.REHEARSAL), os.environ.get("PYTHONPATH", "")]
    env = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "VIRTUAL_ENV": str(config.REPO / ".venv"),
    }
    os.execve(str(python), [str(python), "-m", module, *arguments], env)
