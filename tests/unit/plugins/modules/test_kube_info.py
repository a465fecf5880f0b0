"""The module kube_info as a whole."""

from __future__ import annotations

from ansible_collections.gpunode.serving.plugins.module_utils._module.kube_info import ARGUMENT_SPEC
from ansible_collections.gpunode.serving.plugins.module_utils._module.kube_info import run_module as body

NODE = {"kind": "Node", "name": "laba"}


def test_an_object_is_read_with_its_status(run_module, kube, load) -> None:
    kube.add(load("sim-node/node-after-plugin.json"))
    result = run_module(body, ARGUMENT_SPEC, NODE, connect=lambda path: kube)
    assert (result["reached"], result["exists"]) == (True, True)
    assert result["object"]["status"]["allocatable"]["nvidia.com/gpu.shared"] == "4"
    assert "uid" not in result["object"]["metadata"]


def test_absence_is_an_answer(run_module, kube) -> None:
    result = run_module(body, ARGUMENT_SPEC, NODE, connect=lambda path: kube)
    assert (result["reached"], result["exists"], result["changed"]) == (True, False, False)


def test_no_cluster_is_an_answer_in_check_mode_only(run_module, no_cluster) -> None:
    assert run_module(body, ARGUMENT_SPEC, NODE, connect=no_cluster)["failed"] is True
    checked = run_module(body, ARGUMENT_SPEC, {**NODE, "_ansible_check_mode": True}, connect=no_cluster)
    assert (checked["reached"], checked["seen"]) == (False, "no usable answer (refused)")


def test_a_secret_is_not_shown(run_module, kube) -> None:
    kube.add({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t", "namespace": "llm"}, "data": {"token": "aGY="}})
    arguments = {"kind": "Secret", "name": "t", "namespace": "llm"}
    assert run_module(body, ARGUMENT_SPEC, arguments, connect=lambda path: kube)["object"]["data"] == {"token": "(hidden)"}
