"""Compiling Go programs: one set of flags for all, so that the standard library is compiled once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from .workshop import Workshop

COMMAND = (
    # The other lane, and whoever works on this machine, come first; Kubernetes' larger packages take 1 GB a compiler.
    *("nice", "-n", "5", "go", "build", "-p", "2"),
    "-trimpath",
    # The same sources give the same program, whatever commit the checkout is at.
    "-buildvcs=false",
    # The linker would strip it anyway; not making it saves a tenth of the time and a quarter of Go's cache.
    "-gcflags=all=-dwarf=false",
)
LINKER = ("-s", "-w")
ENVIRONMENT = {"GOFLAGS": "-mod=readonly", "GOWORK": "off", "GOOS": "linux", "GOARCH": "amd64"}
"""Nothing from a user's own Go configuration may change what comes out."""

KEY = " ".join([*COMMAND, *LINKER, *(f"{name}={value}" for name, value in ENVIRONMENT.items())])
"""Belongs into the key of every artifact that holds a compiled program."""


def build_arguments(package: str, output: Path, *, linker: Sequence[str] = (), tags: Sequence[str] = ()) -> list[str]:
    """The ``go build`` command of one program, to be run in its module's folder."""
    argv = [*COMMAND, f"-ldflags={' '.join([*LINKER, *linker])}"]
    if tags:
        argv.append(f"-tags={','.join(tags)}")
    return [*argv, "-o", str(output), package]


def environment(*, cgo: bool, further: Mapping[str, str] | None = None) -> dict[str, str]:
    """Variables of a build.

    :param cgo: whether C code takes part; without it programs are static
    """
    return {**ENVIRONMENT, "CGO_ENABLED": "1" if cgo else "0", **(further or {})}


def go_build(workshop: Workshop, module: Path, package: str, output: Path, *, linker: Sequence[str] = ()) -> None:
    """Compile one static program of this project's own.

    :raises CommandError: when it does not compile
    """
    workshop.run(build_arguments(package, output, linker=linker), cwd=module, env=environment(cgo=False))
