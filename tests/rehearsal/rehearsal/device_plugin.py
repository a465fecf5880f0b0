"""The device plugin stand-in, as a root file system for an image."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from . import gobuild
from .simgpu import PLUGIN
from .workshop import RehearsalError, Workshop

BINARY = "usr/bin/nvidia-device-plugin"
"""Entry point of the image, below its root."""

# libnvidia-ml.so.1 is opened at run time, from wherever the driver put it: its symbols stay open and lazy.
EXTLDFLAGS = "-Wl,--export-dynamic -Wl,--unresolved-symbols=ignore-in-object-files -Wl,-z,lazy"

_LIBRARY = re.compile(r"(?:=> )?(/\S+) \(0x")

OS_RELEASE = 'NAME="gpunode rehearsal"\nID=gpunode\nPRETTY_NAME="device plugin stand-in (gpunode rehearsal)"\n'


def build_device_plugin(workshop: Workshop) -> Path:
    """Compile the stand-in and put the C library beside it that the injected driver libraries need too.

    :returns: artifact folder; ``root/`` is the image's root file system
    """
    code = [path for path in sorted(PLUGIN.glob("*.go")) if not path.name.endswith("_test.go")]
    sources = [PLUGIN / "go.mod", PLUGIN / "go.sum", *code, Path(__file__)]
    return workshop.artifact(
        "device-plugin", lambda folder: _make(workshop, folder / "root"), sources=sources, extra=[gobuild.KEY]
    )


def _make(workshop: Workshop, root: Path) -> None:
    binary = root / BINARY
    binary.parent.mkdir(parents=True)
    workshop.run(
        gobuild.build_arguments(".", binary, linker=(f"'-extldflags={EXTLDFLAGS}'",)),
        cwd=PLUGIN,
        env=gobuild.environment(cgo=True, further={"CGO_CFLAGS": "-O2 -Wno-deprecated-declarations"}),
    )
    for library in libraries(workshop.run(("ldd", binary))):
        target = root / str(library).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(library, target)
        target.chmod(0o755)
    # The toolkit writes the linker's cache here when it injects the driver's libraries.
    (root / "etc").mkdir()
    (root / "etc/os-release").write_text(OS_RELEASE)


def libraries(listing: str) -> list[Path]:
    """Paths of the shared libraries that ``ldd`` lists.

    :raises RehearsalError: when one of them was not found
    """
    if "not found" in listing:
        raise RehearsalError(f"the device plugin stand-in needs a library that this machine has not:\n{listing}")
    return [Path(match) for match in _LIBRARY.findall(listing)]
