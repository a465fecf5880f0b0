"""The module image_archive as a whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils._module.image_archive import ARGUMENT_SPEC
from ansible_collections.gpunode.serving.plugins.module_utils._module.image_archive import run_module as body
from ansible_collections.gpunode.serving.plugins.module_utils._runner import Completed

LIST = "k3s ctr --namespace k8s.io images ls --quiet"
IMAGE = "docker.io/vllm/vllm-openai:v0.26.0"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    (tmp_path / "image.tar").write_bytes(b"")
    return tmp_path / "image.tar"


@pytest.fixture
def call(run_module, runner, archive) -> Any:
    def run(brings: str = IMAGE, **options: Any) -> Any:
        load = f"k3s ctr --namespace k8s.io images import --local {archive}"
        runner.results.setdefault(LIST, Completed(0, "docker.io/rancher/mirrored-pause:3.6\n", ""))
        runner.results[load] = Completed(0, "", "")

        def imported(line: str) -> None:
            if line == load:
                runner.results[LIST] = Completed(0, runner.results[LIST].out + brings + "\n", "")

        runner.on_run = imported
        arguments = {"image": "vllm/vllm-openai:v0.26.0", "archive": str(archive), **options}
        return run_module(body, ARGUMENT_SPEC, arguments, runner=runner)

    return run


def test_an_absent_image_is_imported_once(call) -> None:
    assert call()["changed"] is True
    again = call()
    assert (again["changed"], again["image"]) == (False, IMAGE)


def test_check_mode_predicts_and_imports_nothing(call, runner) -> None:
    assert call(_ansible_check_mode=True)["changed"] is True
    assert runner.ran == [LIST]


def test_check_mode_on_a_node_without_containerd_predicts_too(call, runner) -> None:
    runner.results[LIST] = Completed(127, "", "k3s: command not found")
    assert call(_ansible_check_mode=True)["changed"] is True


def test_without_containerd_the_module_fails(call, runner) -> None:
    runner.results[LIST] = Completed(127, "", "k3s: command not found")
    assert call()["msg"].startswith(f"Listing the node's images: `{LIST}` says k3s: command not found. ")


def test_an_archive_that_brings_another_image_is_named(call) -> None:
    result = call(brings="docker.io/other/name:1")
    assert result["msg"].endswith("image.tar brought docker.io/other/name:1. Use the archive's own name.")


def test_a_missing_archive_is_named(call, archive) -> None:
    archive.unlink()
    result = call()
    assert result["msg"] == f"Importing {IMAGE}: there is no file {archive}. Copy it there, or let the image be pulled."
