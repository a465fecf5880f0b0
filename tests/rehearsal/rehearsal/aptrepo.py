"""Debian packages from plain folders, and signed flat apt repositories made of them."""

from __future__ import annotations

import gzip
import hashlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from .workshop import RehearsalError, Workshop

MAINTAINER = "gpunode rehearsal <rehearsal@gpunode.example>"
EPOCH = "1764547200"
"""Time stamp of everything in a package: the same inputs give the same bytes."""

SCRIPTS = ("preinst", "postinst", "prerm", "postrm")


@dataclass(frozen=True)
class Payload:
    """One file or link that a package brings.

    :param source: a file to copy, or the text that a symbolic link points to
    :param mode: permission bits of a file
    """

    source: Path | str
    mode: int = 0o644


@dataclass(frozen=True)
class Package:
    """A Debian package described by a folder: ``control``, maintainer scripts, ``triggers``, ``conffiles``, ``root/``.

    :param folder: the description; ``@NAME@`` in texts and in file names is replaced
    :param values: what is put for each ``@NAME@``
    :param payload: what is added to ``root/``, by absolute path
    """

    folder: Path
    values: Mapping[str, str]
    payload: Mapping[str, Payload] = field(default_factory=dict)

    def fill(self, text: str) -> str:
        """Replace each ``@NAME@``."""
        for name, value in self.values.items():
            text = text.replace(f"@{name}@", value)
        return text


def build_package(workshop: Workshop, package: Package, target: Path) -> None:
    """Build one ``.deb`` into the folder ``target``."""
    with tempfile.TemporaryDirectory(prefix="gpunode-deb-") as scratch:
        tree = Path(scratch)
        control = package.fill((package.folder / "control").read_text())
        _write(tree / "DEBIAN/control", _with_maintainer(control), 0o644)
        for name in (*SCRIPTS, "triggers", "conffiles"):
            source = package.folder / name
            if source.is_file():
                _write(tree / "DEBIAN" / name, package.fill(source.read_text()), 0o755 if name in SCRIPTS else 0o644)
        root = package.folder / "root"
        for source in sorted(path for path in root.rglob("*") if path.is_file()):
            relative = package.fill(str(source.relative_to(root)))
            _write(tree / relative, package.fill(source.read_text()), 0o755 if source.stat().st_mode & 0o100 else 0o644)
        for path, content in package.payload.items():
            _lay(tree / path.lstrip("/"), content)
        tree.chmod(0o755)
        workshop.run(("dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, target), env={"SOURCE_DATE_EPOCH": EPOCH})


def _with_maintainer(control: str) -> str:
    head, _, rest = control.partition("\nArchitecture:")
    return f"{head}\nMaintainer: {MAINTAINER}\nPriority: optional\nArchitecture:{rest}"


def _write(path: Path, text: str, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)


def _lay(path: Path, content: Payload) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content.source, str):
        path.symlink_to(content.source)
    else:
        shutil.copyfile(content.source, path)
        path.chmod(content.mode)


@dataclass(frozen=True)
class SigningKey:
    """A key that signs repositories: it is made once, stays in the cache folder, and never goes into git.

    :param home: GnuPG's folder with the secret key
    :param fingerprint: 40 hex digits
    :param public: the public key, armored
    """

    home: Path
    fingerprint: str
    public: str


def signing_key(workshop: Workshop, owner: str) -> SigningKey:
    """Find or make the key of a repository's owner.

    :param owner: e.g. ``cuda``; each publisher has a key of its own
    """
    home = workshop.root / "keys" / owner
    with workshop.locked("keys"), _gpg(workshop, home) as gpg:
        fingerprint = _fingerprint(workshop, gpg)
        if fingerprint is None:
            identity = f"gpunode rehearsal stand-in for {owner}"
            workshop.run((*gpg, "--passphrase", "", "--quick-generate-key", identity, "rsa3072", "sign", "never"))
            fingerprint = _fingerprint(workshop, gpg)
        if fingerprint is None:
            raise RehearsalError(f"gpg made no key in {home}; remove that folder and start again. See {workshop.log_path}")
        return SigningKey(home, fingerprint, workshop.run((*gpg, "--armor", "--export", fingerprint)))


def _fingerprint(workshop: Workshop, gpg: Sequence[str]) -> str | None:
    """Fingerprint of the one key in a home folder, None when there is none yet."""
    listing = workshop.run((*gpg, "--with-colons", "--list-secret-keys"))
    return next((line.split(":")[9] for line in listing.splitlines() if line.startswith("fpr:")), None)


@contextmanager
def _gpg(workshop: Workshop, home: Path) -> Iterator[tuple[str, ...]]:
    """GnuPG's command line for a home folder.

    Its agent is ended afterwards, or it would stay for ever. The home goes by a short name: the agent's socket lies in it, and
    a socket's path has at most 107 characters.
    """
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    with tempfile.TemporaryDirectory(prefix="gpunode-gpg-") as scratch:
        short = Path(scratch) / "home"
        short.symlink_to(home)
        try:
            yield ("gpg", "--homedir", str(short), "--batch", "--yes", "--no-tty", "--quiet", "--pinentry-mode", "loopback")
        finally:
            workshop.run(("gpgconf", "--homedir", short, "--kill", "gpg-agent"))


@dataclass(frozen=True)
class Release:
    """What a repository says of itself.

    :param origin: the publisher that is stood in for
    :param label: shown by ``apt-cache policy``; says that it is a stand-in
    """

    origin: str
    label: str


def build_repository(workshop: Workshop, folder: Path, packages: Iterable[Package], release: Release, key: SigningKey) -> None:
    """Build packages into a folder and index and sign it as a flat repository (``deb URL /``)."""
    for package in packages:
        build_package(workshop, package, folder)
    index = workshop.run(("dpkg-scanpackages", "--multiversion", "."), cwd=folder)
    (folder / "Packages").write_text(index)
    (folder / "Packages.gz").write_bytes(gzip.compress(index.encode(), mtime=0))
    (folder / "Release").write_text(_release_text(release, folder, ("Packages", "Packages.gz")))
    with _gpg(workshop, key.home) as gpg:
        sign = (*gpg, "--local-user", key.fingerprint)
        workshop.run((*sign, "--clearsign", "--output", folder / "InRelease", folder / "Release"))
        workshop.run((*sign, "--armor", "--detach-sign", "--output", folder / "Release.gpg", folder / "Release"))


def _release_text(release: Release, folder: Path, files: Sequence[str]) -> str:
    sums = "".join(
        f" {hashlib.sha256((folder / name).read_bytes()).hexdigest()} {(folder / name).stat().st_size} {name}\n" for name in files
    )
    return (
        f"Origin: {release.origin}\nLabel: {release.label}\nArchitectures: amd64\n"
        f"Date: Mon, 01 Dec 2025 00:00:00 UTC\nSHA256:\n{sums}"
    )
