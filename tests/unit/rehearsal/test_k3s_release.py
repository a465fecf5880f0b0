"""The k3s release: what is refused, and the layout that the role downloads from."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from rehearsal import k3s_release
from rehearsal.workshop import RehearsalError, Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(root=tmp_path / "cache", log_path=tmp_path / "log")


def test_missing_parts_are_named(workshop: Workshop, tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match=r"no part runc, cni, cri-tools, kube-router was given"):
        k3s_release.build_k3s(workshop, dict.fromkeys(("kubernetes", "etcd", "containerd", "coredns"), tmp_path))


def test_release_page_has_the_publishers_layout(workshop: Workshop, tmp_path: Path) -> None:
    k3s, airgap = tmp_path / "cache" / "k3s-1", tmp_path / "cache" / "image-airgap-1"
    for folder, name in ((k3s, "k3s"), (airgap, k3s_release.AIRGAP)):
        folder.mkdir(parents=True)
        (folder / name).write_bytes(name.encode())
    page = k3s_release.build_release(workshop, k3s, airgap, "v1.2.3+k3s1") / "v1.2.3+k3s1"
    assert sorted(path.name for path in page.iterdir()) == ["k3s", "k3s-airgap-images-amd64.tar.zst", "sha256sum-amd64.txt"]
    lines = (page / "sha256sum-amd64.txt").read_text().splitlines()
    assert f"{hashlib.sha256(b'k3s').hexdigest()}  k3s" in lines
    assert len(lines) == 2


def test_release_without_its_program_says_what_to_do(workshop: Workshop, tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match="remove its artifact folder and start again"):
        k3s_release.build_release(workshop, tmp_path, tmp_path)
