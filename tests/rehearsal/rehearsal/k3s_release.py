"""The k3s stand-in as one file, and the folder that stands for its page of releases."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from . import gobuild
from .config import K3S_VERSION, REHEARSAL
from .gobuild import go_build
from .workshop import RehearsalError, Workshop

MODULE = REHEARSAL / "go" / "k3s"
COMPONENTS = ("kubernetes", "etcd", "containerd", "runc", "cni", "cri-tools", "kube-router")
"""Go parts that k3s carries. CoreDNS is an image, and the container toolkit comes from its own packages."""

PROGRAM = "k3s"
CHECKSUMS = "sha256sum-amd64.txt"
AIRGAP = "k3s-airgap-images-amd64.tar.zst"


def build_k3s(workshop: Workshop, parts: Mapping[str, Path], version: str = K3S_VERSION) -> Path:
    """Compile the stand-in and append the components to it.

    :param parts: name of a Go part → its artifact folder; parts that k3s does not carry are left alone
    :param version: the release that it says it is
    :returns: folder with the program ``k3s``
    :raises RehearsalError: when a component is missing or does not build
    """
    missing = [name for name in COMPONENTS if name not in parts]
    if missing:
        raise RehearsalError(f"cannot pack k3s {version}: no part {', '.join(missing)} was given; build the Go parts first")
    folders = [parts[name] for name in COMPONENTS]

    def make(folder: Path) -> None:
        bare, pack = folder / "k3s-bare", folder / "pack"
        go_build(workshop, MODULE, ".", bare, linker=(f"-X=main.version={version}",))
        go_build(workshop, MODULE, "./cmd/pack", pack)
        workshop.run([pack, "-program", bare, "-out", folder / PROGRAM, *folders])
        bare.unlink()
        pack.unlink()

    sources = _sources()
    names = [str(path.relative_to(MODULE)) for path in sources]
    return workshop.artifact("k3s", make, sources=sources, extra=[gobuild.KEY, version, *names, *(path.name for path in folders)])


def _sources() -> list[Path]:
    """What the program is made of: a new test or a better README is no reason to make every node anew."""
    kept = (path for path in MODULE.rglob("*") if path.is_file())
    return sorted(path for path in kept if path.suffix != ".md" and not path.name.endswith("_test.go"))


def build_release(workshop: Workshop, k3s: Path, airgap_images: Path, version: str = K3S_VERSION) -> Path:
    """Lay a release out as its publisher does.

    :param k3s: artifact folder of :func:`build_k3s`
    :param airgap_images: artifact folder with ``k3s-airgap-images-amd64.tar.zst``
    :param version: name of the release
    :returns: folder with ``<version>/{k3s,sha256sum-amd64.txt,k3s-airgap-images-amd64.tar.zst}``
    :raises RehearsalError: when one of the two files is not there
    """
    sources = {PROGRAM: k3s / PROGRAM, AIRGAP: airgap_images / AIRGAP}
    for path in sources.values():
        if not path.is_file():
            raise RehearsalError(
                f"cannot lay out release {version}: {path} is not there; remove its artifact folder and start again"
            )

    def make(folder: Path) -> None:
        page = folder / version
        page.mkdir()
        for name, source in sources.items():
            os.link(source, page / name)
        (page / CHECKSUMS).write_text(checksums(sources), encoding="ascii")

    return workshop.artifact("k3s-release", make, sources=[Path(__file__)], extra=[version, k3s.name, airgap_images.name])


def checksums(files: Mapping[str, Path]) -> str:
    """The publisher's checksum file: one line ``<sha256>  <name>`` a file, as ``sha256sum`` writes and reads it."""
    lines = []
    for name in sorted(files):
        with files[name].open("rb") as handle:
            lines.append(f"{hashlib.file_digest(handle, 'sha256').hexdigest()}  {name}\n")
    return "".join(lines)
