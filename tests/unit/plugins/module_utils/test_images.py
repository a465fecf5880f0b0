"""Names of images, and importing archives."""

from __future__ import annotations

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils._errors import InvalidInputError, LibraryError
from ansible_collections.gpunode.serving.plugins.module_utils._images import Containerd, normalised
from ansible_collections.gpunode.serving.plugins.module_utils._runner import Completed

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("vllm/vllm-openai:v0.26.0", "docker.io/vllm/vllm-openai:v0.26.0"),
        ("busybox:1.36", "docker.io/library/busybox:1.36"),
        ("nvcr.io/nvidia/k8s-device-plugin:v0.19.3", "nvcr.io/nvidia/k8s-device-plugin:v0.19.3"),
        ("localhost/vllm-cpu:1", "localhost/vllm-cpu:1"),
        ("registry:5000/a/b:1", "registry:5000/a/b:1"),
        (f"vllm/vllm-openai@{DIGEST}", f"docker.io/vllm/vllm-openai@{DIGEST}"),
        (f"a.example/b:latest@{DIGEST}", f"a.example/b:latest@{DIGEST}"),
    ],
)
def test_the_full_name(image: str, full: str) -> None:
    assert normalised(image) == full


@pytest.mark.parametrize("image", ["vllm/vllm-openai", "vllm/vllm-openai:latest"])
def test_a_name_without_a_fixed_version_is_refused(image: str) -> None:
    with pytest.raises(InvalidInputError, match=r"it names no fixed version. Give a tag other than latest, or a digest."):
        normalised(image)


@pytest.mark.parametrize("image", ["", "UPPER/case:1", "a b:1", "https://docker.io/a:1", "a:1@sha256:12"])
def test_a_name_that_is_none_is_refused(image: str) -> None:
    with pytest.raises(InvalidInputError, match=r"it is not of the form"):
        normalised(image)


def test_containerd_that_does_not_answer_is_named(runner) -> None:
    runner.results["k3s ctr --namespace k8s.io images ls --quiet"] = Completed(1, "", "line\nconnection refused\n")
    with pytest.raises(LibraryError, match=r"Listing the node's images: .* says connection refused"):
        Containerd(runner, ["k3s", "ctr"]).images()
