"""Placeholders for CUDA libraries that torch is linked to and that nothing calls on a machine without a GPU.

The dynamic loader must find each library and each symbol before ``import torch`` succeeds, so a placeholder has exactly the
symbols that torch's own libraries ask for. Whoever calls one gets a line on standard error and an abort: it never pretends to
work.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .workshop import RehearsalError, Workshop

SONAME_BY_PREFIX: Mapping[str, str] = {
    "cublasLt": "libcublasLt.so.13",
    "cublas": "libcublas.so.13",
    "cudnn": "libcudnn.so.9",
    "cufft": "libcufft.so.12",
    "curand": "libcurand.so.10",
    "cusparseLt": "libcusparseLt.so.0",
    "cusparse": "libcusparse.so.12",
    "cuFile": "libcufile.so.0",
    "nccl": "libnccl.so.2",
    "nvrtc": "libnvrtc.so.13",
    "nvshmem": "libnvshmem_host.so.3",
}
"""Which library defines a symbol, by how its name begins; a longer prefix stands before the one it contains."""


@dataclass
class Library:
    """What a placeholder must define.

    :param symbols: names of functions
    :param versions: names of their symbol versions; none for a library without versions
    """

    symbols: set[str] = field(default_factory=set)
    versions: set[str] = field(default_factory=set)


def missing_libraries(nm_output: str) -> dict[str, Library]:
    """Sort undefined symbols by the library that is to define them.

    :param nm_output: what ``nm --dynamic --undefined-only --with-symbol-versions`` printed
    :returns: one entry for each library of :data:`SONAME_BY_PREFIX`, also when no symbol of it is asked for
    """
    libraries = {soname: Library() for soname in SONAME_BY_PREFIX.values()}
    for line in nm_output.splitlines():
        words = line.split()
        if len(words) != 2 or words[0] not in {"U", "w"}:
            continue
        name, _, version = words[1].partition("@")
        soname = next((soname for prefix, soname in SONAME_BY_PREFIX.items() if name.startswith(prefix)), None)
        if soname:
            libraries[soname].symbols.add(name)
            libraries[soname].versions.update([version.strip("@")] if version else [])
    return libraries


def placeholder_source(soname: str, symbols: Iterable[str]) -> str:
    """C source of one placeholder."""
    message = f"{soname} is a placeholder: this image has no GPU libraries, and something called one\n"
    lines = [
        "#include <stdlib.h>",
        "#include <unistd.h>",
        "static const char message[] = " + json.dumps(message) + ";",
        "void refuse(void) { (void)!write(2, message, sizeof message - 1); abort(); }",
        *(f'void {name}(void) __attribute__((alias("refuse")));' for name in sorted(symbols)),
    ]
    return "\n".join(lines) + "\n"


def install_placeholders(workshop: Workshop, torch_lib: Path, scratch: Path) -> None:
    """Build the placeholders beside torch's libraries, where the loader looks first.

    :param torch_lib: ``torch/lib`` of the installed libraries
    :param scratch: folder for sources
    :raises RehearsalError: when a library asks for two versions of one placeholder, which this cannot express
    """
    asking = sorted(torch_lib.glob("*.so*"))
    wanted = workshop.run(["nm", "--dynamic", "--undefined-only", "--with-symbol-versions", *asking])
    for soname, library in missing_libraries(wanted).items():
        if len(library.versions) > 1:
            raise RehearsalError(
                f"cannot make a placeholder for {soname}: torch asks for the symbol versions {sorted(library.versions)}, "
                "one was expected; install the real library instead (tests/rehearsal/vllm/overrides.txt)"
            )
        source, script = scratch / f"{soname}.c", scratch / f"{soname}.map"
        source.write_text(placeholder_source(soname, library.symbols), encoding="utf-8")
        options = [f"-Wl,-soname,{soname}"]
        for version in library.versions:
            script.write_text(f"{version} {{ global: *; }};\n", encoding="utf-8")
            options.append(f"-Wl,--version-script={script}")
        workshop.run(["gcc", "-w", "-shared", "-fPIC", "-Os", "-s", *options, "-o", torch_lib / soname, source])
