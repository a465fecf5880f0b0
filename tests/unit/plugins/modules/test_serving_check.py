"""The module serving_check as a whole: it succeeds whatever the verdict is, and never passes what it could not see."""

from __future__ import annotations

from typing import Any

from ansible_collections.gpunode.serving.plugins.module_utils._module.serving_check import ARGUMENT_SPEC
from ansible_collections.gpunode.serving.plugins.module_utils._module.serving_check import run_module as body
from ansible_collections.gpunode.serving.plugins.module_utils._runner import Completed

ARGUMENTS = {"namespace": "llm", "service": "vllm-qwen", "model": "tiny", "probe_image": "docker.io/x/vllm:1", "node": "laba"}
SLICING = {"renameByDefault": True, "resources": [{"name": "nvidia.com/gpu", "replicas": 4}]}
CONFIG = {"version": "v1", "sharing": {"timeSlicing": SLICING}}


def seen(result: Any) -> dict[str, str]:
    return {check["name"]: check["verdict"] for check in result["checks"]}


def test_without_a_cluster_nothing_can_be_told(run_module, no_cluster) -> None:
    result = run_module(body, ARGUMENT_SPEC, ARGUMENTS, connect=no_cluster)
    assert (result["changed"], result["verdict"]) == (False, "cannot_tell")
    assert seen(result) == {"node": "cannot_tell", "endpoints": "cannot_tell", "dns": "cannot_tell"}
    assert result["checks"][0]["remedy"] == "See `systemctl status k3s`."


def test_a_failed_check_is_no_failed_module(run_module, kube, http, clock) -> None:
    result = run_module(body, ARGUMENT_SPEC, {**ARGUMENTS, "checks": ["endpoints"]}, connect=lambda p: kube, http=lambda: http)
    assert "failed" not in result
    assert (result["verdict"], seen(result)) == ("fail", {"endpoints": "fail"})


def test_the_promise_comes_from_the_plugins_configuration_and_the_driver(run_module, kube, load, runner) -> None:
    kube.add(load("sim-node/node-after-plugin.json"))
    runner.results["nvidia-smi --query-gpu=uuid --format=csv,noheader"] = Completed(0, "GPU-1\n", "")
    arguments = {**ARGUMENTS, "checks": ["node"], "plugin_config": CONFIG, "labels": {"ground": "a test"}}
    result = run_module(body, ARGUMENT_SPEC, arguments, connect=lambda p: kube, runner=runner)
    assert seen(result) == {"runtime handler nvidia": "pass", "allocatable nvidia.com/gpu.shared": "pass"}
    document = result["document"]
    assert document["versions"]["kubernetes"] == "v1.36.2+k3s1"
    assert document["versions"]["kubelet"] == "v1.36.3"
    assert document["labels"] == {"ground": "a test"}
    assert document["subject"]["node"] == "laba"


def test_check_mode_makes_no_pod(run_module, kube) -> None:
    arguments = {**ARGUMENTS, "checks": ["dns"], "_ansible_check_mode": True}
    result = run_module(body, ARGUMENT_SPEC, arguments, connect=lambda p: kube)
    assert (result["checks"][0]["seen"], result["verdict"]) == ("check mode creates no Pod", "cannot_tell")
    assert kube.writes == []


def test_a_group_that_breaks_leaves_the_others(run_module, kube, load) -> None:
    kube.add(load("sim-node/node-after-plugin.json"))

    def broken() -> Any:
        from ansible_collections.gpunode.serving.plugins.module_utils._errors import LibraryError

        raise LibraryError("Preparing HTTP requests", "this Python has no httpx", "Run the role node_baseline first.")

    arguments = {**ARGUMENTS, "checks": ["endpoints", "node"]}
    result = run_module(body, ARGUMENT_SPEC, arguments, connect=lambda p: kube, http=broken)
    assert result["checks"][0]["seen"].startswith("Preparing HTTP requests: this Python has no httpx")
    assert result["checks"][1]["verdict"] == "pass"
