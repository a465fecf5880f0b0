"""Docker archives written with the standard library: container images without a container engine.

An archive is what ``docker save`` writes and ``ctr images import``, k3s's ``agent/images`` and podman read. The bytes depend
on nothing but the input: order, times and user names are fixed, so an artifact built twice has one digest.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from .workshop import RehearsalError

EPOCH = 1577836800
"""Time of every file in a layer (2020-01-01): zip tools refuse times before 1980."""
_CREATED = "2020-01-01T00:00:00Z"
_BUFFER = 1 << 20


@dataclass(frozen=True)
class Image:
    """What one image consists of.

    :param tags: full references, e.g. ``docker.io/rancher/mirrored-pause:3.6``
    :param layers: root folders or uncompressed tar files, lowest first; images of one archive may share them
    :param entrypoint: command that always runs
    :param cmd: its default arguments
    :param env: environment variables
    :param user: ``uid`` or ``uid:gid``; empty for root
    :param workdir: directory to start in
    :param labels: image labels
    """

    tags: Sequence[str]
    layers: Sequence[Path]
    entrypoint: Sequence[str] = ()
    cmd: Sequence[str] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    workdir: str = "/"
    labels: Mapping[str, str] = field(default_factory=dict)


def write_docker_archive(target: Path, images: Sequence[Image]) -> None:
    """Write images into one docker archive.

    :param target: file to write
    :raises RehearsalError: when an image has no layer or a layer does not exist
    """
    for image in images:
        missing = [str(layer) for layer in image.layers if not layer.exists()]
        if missing or not image.layers:
            raise RehearsalError(
                f"cannot write image {', '.join(image.tags)} into {target}: "
                f"{'no such layer: ' + ', '.join(missing) if missing else 'it has no layers'}; build its root folder first"
            )
    manifest = []
    digests: dict[Path, str] = {}
    configs: set[str] = set()
    with target.open("wb") as archive:
        for image in images:
            for layer in image.layers:
                if layer not in digests:
                    digests[layer] = _write_layer(archive, layer)
            config = _json(_config(image, [digests[layer] for layer in image.layers]))
            name = hashlib.sha256(config).hexdigest() + ".json"
            if name not in configs:
                configs.add(name)
                _write_member(archive, name, config)
            layers = [f"{digests[layer]}.tar" for layer in image.layers]
            manifest.append({"Config": name, "RepoTags": list(image.tags), "Layers": layers})
        _write_member(archive, "manifest.json", _json(manifest))
        archive.write(b"\0" * 2 * tarfile.BLOCKSIZE)


def _json(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _config(image: Image, digests: Iterable[str]) -> dict[str, object]:
    """The image configuration of the OCI specification."""
    return {
        "architecture": "amd64",
        "os": "linux",
        "created": _CREATED,
        "config": {
            "Entrypoint": list(image.entrypoint),
            "Cmd": list(image.cmd),
            "Env": [f"{name}={value}" for name, value in image.env.items()],
            "User": image.user,
            "WorkingDir": image.workdir,
            "Labels": dict(image.labels),
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]},
        "history": [{"created": _CREATED, "created_by": "tests/rehearsal"} for _ in image.layers],
    }


class _HashingWriter(io.RawIOBase):
    """Pass bytes on and keep their SHA-256."""

    def __init__(self, out: IO[bytes]) -> None:
        self.out, self.sha256 = out, hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes | bytearray | memoryview) -> int:  # type: ignore[override]
        self.sha256.update(data)
        return self.out.write(data)


def _write_layer(archive: IO[bytes], layer: Path) -> str:
    """Stream one layer into the archive and return its digest.

    A layer of gigabytes is written once: name and size are known only afterwards, so the header is put in front of it then.
    """
    header_at = archive.tell()
    archive.write(b"\0" * tarfile.BLOCKSIZE)
    writer = _HashingWriter(archive)
    if layer.is_dir():
        _tar_folder(writer, layer)
    else:
        with layer.open("rb") as source:
            shutil.copyfileobj(source, writer, _BUFFER)
    size = archive.tell() - header_at - tarfile.BLOCKSIZE
    digest = writer.sha256.hexdigest()
    archive.write(b"\0" * (-size % tarfile.BLOCKSIZE))
    end = archive.tell()
    archive.seek(header_at)
    archive.write(_header(f"{digest}.tar", size))
    archive.seek(end)
    return digest


def _write_member(archive: IO[bytes], name: str, content: bytes) -> None:
    archive.write(_header(name, len(content)))
    archive.write(content + b"\0" * (-len(content) % tarfile.BLOCKSIZE))


def _header(name: str, size: int) -> bytes:
    """One tar header block; GNU format, because only it holds more than 8 GiB in a single block."""
    member = tarfile.TarInfo(name)
    member.size, member.mtime = size, EPOCH
    return member.tobuf(tarfile.GNU_FORMAT)


def _tar_folder(out: _HashingWriter, root: Path) -> None:
    """Write a folder as a layer: sorted names, fixed times, numeric owners as they are on disk."""

    def fixed(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.mtime = EPOCH
        member.uname = member.gname = ""
        return member

    with tarfile.open(fileobj=out, mode="w|", format=tarfile.GNU_FORMAT, bufsize=_BUFFER, copybufsize=_BUFFER) as tar:  # type: ignore[call-overload]
        for path in sorted(root.iterdir()):
            tar.add(path, arcname=path.name, filter=fixed)
