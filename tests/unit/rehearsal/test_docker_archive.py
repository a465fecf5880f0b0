"""Docker archives: what a container engine will check is checked here."""

from __future__ import annotations

import hashlib
import json
import os
import tarfile
from pathlib import Path

import pytest
from rehearsal.docker_archive import Image, write_docker_archive
from rehearsal.workshop import RehearsalError

TAG = "docker.io/rehearsal/one:1"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root folder with a program, a link and a hard link."""
    root = tmp_path / "root"
    (root / "usr/bin").mkdir(parents=True)
    program = root / "usr/bin/program"
    program.write_bytes(b"\x7fELF" + b"x" * 3000)
    program.chmod(0o755)
    (root / "usr/bin/alias").symlink_to("program")
    (root / "usr/bin/second").hardlink_to(program)
    (root / "bin").symlink_to("usr/bin")
    return root


def _members(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def test_names_are_digests_of_what_they_hold(tmp_path: Path, root: Path) -> None:
    write_docker_archive(tmp_path / "a.tar", [Image(tags=[TAG], layers=[root], entrypoint=["/usr/bin/program"])])
    members = _members(tmp_path / "a.tar")
    (entry,) = json.loads(members["manifest.json"])
    assert entry["RepoTags"] == [TAG]
    assert entry["Config"] == hashlib.sha256(members[entry["Config"]]).hexdigest() + ".json"
    (layer,) = entry["Layers"]
    assert layer == hashlib.sha256(members[layer]).hexdigest() + ".tar"
    config = json.loads(members[entry["Config"]])
    assert config["rootfs"] == {"type": "layers", "diff_ids": ["sha256:" + layer.removesuffix(".tar")]}
    assert (config["os"], config["architecture"]) == ("linux", "amd64")


def test_config_carries_how_to_start(tmp_path: Path, root: Path) -> None:
    image = Image(
        tags=[TAG], layers=[root], entrypoint=["/e"], cmd=["c"], env={"A": "1"}, user="2000:2000", workdir="/w", labels={"l": "v"}
    )
    write_docker_archive(tmp_path / "a.tar", [image])
    members = _members(tmp_path / "a.tar")
    config = json.loads(members[json.loads(members["manifest.json"])[0]["Config"]])["config"]
    assert config == {
        "Entrypoint": ["/e"],
        "Cmd": ["c"],
        "Env": ["A=1"],
        "User": "2000:2000",
        "WorkingDir": "/w",
        "Labels": {"l": "v"},
    }


def test_layer_keeps_modes_and_links(tmp_path: Path, root: Path) -> None:
    write_docker_archive(tmp_path / "a.tar", [Image(tags=[TAG], layers=[root])])
    members = _members(tmp_path / "a.tar")
    layer = tmp_path / "layer.tar"
    layer.write_bytes(members[json.loads(members["manifest.json"])[0]["Layers"][0]])
    with tarfile.open(layer) as tar:
        found = {member.name: member for member in tar}
    assert list(found) == ["bin", "usr", "usr/bin", "usr/bin/alias", "usr/bin/program", "usr/bin/second"]
    assert found["bin"].linkname == "usr/bin"
    assert found["usr/bin/program"].mode == 0o755
    assert found["usr/bin/second"].islnk()
    assert found["usr/bin/second"].linkname == "usr/bin/program"


def test_bytes_depend_on_content_only(tmp_path: Path, root: Path) -> None:
    image = Image(tags=[TAG], layers=[root])
    write_docker_archive(tmp_path / "a.tar", [image])
    for path in (root, root / "usr/bin/program"):
        os.utime(path, (1, 1))
    write_docker_archive(tmp_path / "b.tar", [image])
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_images_share_an_archive_and_a_layer(tmp_path: Path, root: Path) -> None:
    tar = tmp_path / "top.tar"
    with tarfile.open(tar, "w") as handle:
        handle.addfile(tarfile.TarInfo("etc"))
    images = [
        Image(tags=[TAG, "docker.io/rehearsal/one:latest"], layers=[root]),
        Image(tags=["docker.io/rehearsal/two:1"], layers=[root, tar]),
    ]
    write_docker_archive(tmp_path / "a.tar", images)
    members = _members(tmp_path / "a.tar")
    first, second = json.loads(members["manifest.json"])
    assert first["Layers"] == second["Layers"][:1]
    assert members[second["Layers"][1]] == tar.read_bytes()
    assert sorted(members) == sorted({*second["Layers"], first["Config"], second["Config"], "manifest.json"})


@pytest.mark.parametrize(("layers", "seen"), [([], "it has no layers"), (["absent"], "no such layer")])
def test_an_image_without_its_layers_is_refused(tmp_path: Path, layers: list[str], seen: str) -> None:
    image = Image(tags=[TAG], layers=[tmp_path / layer for layer in layers])
    with pytest.raises(RehearsalError, match=rf"cannot write image {TAG} .*{seen}.*build its root folder first"):
        write_docker_archive(tmp_path / "a.tar", [image])
    assert not (tmp_path / "a.tar").exists()
