"""The module wait_for_gpus as a whole."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils._module.wait_for_gpus import ARGUMENT_SPEC
from ansible_collections.gpunode.serving.plugins.module_utils._module.wait_for_gpus import run_module as body
from ansible_collections.gpunode.serving.plugins.module_utils._objects import Ref

CONFIG = {
    "version": "v1",
    "sharing": {"timeSlicing": {"renameByDefault": True, "resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}},
}
NODE = Ref("v1", "Node", "laba")


@pytest.fixture
def call(run_module, kube, clock, runner) -> Any:
    def run(**options: Any) -> Any:
        arguments = {"node": "laba", "config": CONFIG, "gpus": 1, **options}
        return run_module(body, ARGUMENT_SPEC, arguments, connect=lambda path: kube, clock=clock, runner=runner)

    return run


def test_the_promised_count_is_waited_for(call, kube, load, clock) -> None:
    kube.add(load("sim-node/node-plugin-gone.json"))
    clock.on_sleep = lambda: kube.add(load("sim-node/node-after-plugin.json"))
    result = call()
    assert result["changed"] is False
    assert result["attempts"] == 2
    assert result["allocatable"] == {"nvidia.com/gpu.shared": 4, "nvidia.com/gpu": None}
    assert result["expected"] == {"nvidia.com/gpu.shared": 4, "nvidia.com/gpu": 0}


def test_a_count_that_does_not_come_is_explained_by_the_plugins_log(call, kube, load, text) -> None:
    kube.add(load("sim-node/node-plugin-gone.json"))
    labels = {"app.kubernetes.io/name": "nvidia-device-plugin"}
    meta = {"name": "plugin-x", "namespace": "nvidia-device-plugin", "labels": labels}
    kube.add({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": [{"name": "c"}]}})
    kube.logs["plugin-x", "c", False] = text("cases/P01-plugin-nvml.log")
    result = call(wait_timeout=10)
    assert result["msg"].startswith(
        "Waiting for the GPUs of Node laba: allocatable is nvidia.com/gpu.shared 0, nvidia.com/gpu absent"
    )
    assert result["msg"].endswith("it must run with the RuntimeClass nvidia.")
    assert result["allocatable"]["nvidia.com/gpu.shared"] == 0


def test_a_configuration_that_the_plugin_would_misread_is_refused(call) -> None:
    assert "flags.renameByDefault" in call(config={"version": "v1", "flags": {"renameByDefault": True}})["msg"]


def test_without_a_driver_the_count_is_unknown(call) -> None:
    assert call(gpus=0)["msg"].startswith("Counting the node's GPUs: nvidia-smi says nvidia-smi: command not found. ")


def test_check_mode_waits_for_nothing(call, kube) -> None:
    assert call(_ansible_check_mode=True)["attempts"] == 0
