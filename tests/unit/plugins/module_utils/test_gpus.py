"""Counting GPUs, and what a node offers."""

from __future__ import annotations

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils._errors import LibraryError
from ansible_collections.gpunode.serving.plugins.module_utils._gpus import as_promised, count, explain, offered
from ansible_collections.gpunode.serving.plugins.module_utils._runner import Completed

QUERY = "nvidia-smi --query-gpu=uuid --format=csv,noheader"
PROMISED = {"nvidia.com/gpu.shared": 4, "nvidia.com/gpu": 0}


def test_gpus_are_counted_by_uuid(runner) -> None:
    runner.results[QUERY] = Completed(0, "GPU-1\nGPU-2\n", "")
    assert count(runner) == 2


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (Completed(127, "", "nvidia-smi: command not found"), "nvidia-smi says nvidia-smi: command not found"),
        (Completed(9, "No devices were found\n", ""), "nvidia-smi says No devices were found"),
        (Completed(18, "Failed to initialize NVML: Driver/library version mismatch\n", ""), "version mismatch"),
        (Completed(0, "", ""), "exit code 0"),
    ],
)
def test_a_driver_that_does_not_answer_is_no_zero(runner, done: Completed, words: str) -> None:
    runner.results[QUERY] = done
    with pytest.raises(LibraryError, match=words):
        count(runner)


@pytest.mark.parametrize(
    ("fixture", "kept"),
    [
        ("sim-node/node-after-plugin.json", True),
        ("gpu-access-h200/node-gpu.json", True),
        ("cases/R09-node-timesliced.json", False),
        ("sim-node/node-plugin-gone.json", False),
        ("sim-node/node-after-xid79.json", False),
        ("sim-node/node-exclusive-after-shared.json", False),
        ("cases/P02-node.json", False),
        ("cases/P04-node.json", False),
        ("cases/P12-node.json", False),
    ],
)
def test_nodes_of_real_clusters_against_one_gpu_in_four_slices(kube, load, fixture: str, kept: bool) -> None:
    node = kube.add(load(fixture))
    assert as_promised(offered(kube, node["metadata"]["name"], PROMISED), PROMISED) is kept


def test_a_node_that_does_not_exist_is_named_with_those_that_do(kube, load) -> None:
    kube.add(load("sim-node/node-after-plugin.json"))
    with pytest.raises(LibraryError, match=r"Reading Node gpu-9: it does not exist \(nodes: laba\)"):
        offered(kube, "gpu-9", PROMISED)


@pytest.mark.parametrize(
    ("fixture", "words"),
    [
        ("cases/P01-plugin-nvml.log", "must run with the RuntimeClass nvidia"),
        ("gpu-access-h200/plugin-no-runtimeclass.log", "must run with the RuntimeClass nvidia"),
        ("sim-node/plugin-unprivileged-envvar-false.log", "must run with the RuntimeClass nvidia"),
        ("cases/P13-plugin.log", "refuses fewer than 2 replicas"),
        ("cases/T04-plugin.log", "must run with the RuntimeClass nvidia"),
        ("sim-node/plugin-start.log", ""),
    ],
)
def test_the_plugins_log_is_explained(text, fixture: str, words: str) -> None:
    assert words in explain(text(fixture))
    assert words or explain(text(fixture)) == ""


def test_broken_drivers_are_told_apart(text) -> None:
    parts = dict(part.split("\n", 1) for part in text("sim-node/plugin-stub-variants.log").split("== ")[1:])
    assert explain(parts["fail9"]) == "The driver's kernel module is not loaded: run nvidia-smi on the node."
    assert explain(parts["fail18"]) == "The loaded driver is older than its libraries: reboot the node."
