"""After the role the node offers its GPU in slices, and says so itself."""

from __future__ import annotations

import json
from typing import Any

import pytest

KUBECTL = "k3s kubectl --kubeconfig /etc/rancher/k3s/k3s.yaml"


@pytest.fixture(scope="module")
def kubectl(host: Any) -> Any:
    """Objects as the API server has them."""
    return lambda command: json.loads(host.check_output(f"{KUBECTL} get {command} --output json"))


@pytest.fixture(scope="module")
def node(kubectl: Any) -> Any:
    (only,) = kubectl("nodes")["items"]
    return only


def test_one_gpu_is_offered_four_times_under_its_shared_name(node: Any) -> None:
    allocatable = node["status"]["allocatable"]
    assert allocatable["nvidia.com/gpu.shared"] == "4"
    assert allocatable.get("nvidia.com/gpu", "0") == "0"


def test_the_node_carries_the_label_that_the_plugin_selects(node: Any) -> None:
    assert node["metadata"]["labels"]["nvidia.com/gpu.present"] == "true"


def test_the_plugin_runs_with_the_nvidia_runtime_and_without_rights(kubectl: Any) -> None:
    (pod,) = kubectl("pods --namespace nvidia-device-plugin")["items"]
    (container,) = pod["spec"]["containers"]
    assert pod["status"]["phase"] == "Running"
    assert pod["spec"]["runtimeClassName"] == "nvidia"
    assert pod["spec"]["priorityClassName"] == "system-node-critical"
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not any("serviceaccount" in mount["mountPath"] for mount in container["volumeMounts"])


def test_the_pod_was_made_for_the_configuration_in_force(kubectl: Any) -> None:
    config = kubectl("configmap nvidia-device-plugin --namespace nvidia-device-plugin")["data"]["config.yaml"]
    slicing = json.loads(config)["sharing"]["timeSlicing"]
    assert slicing["resources"] == [{"name": "nvidia.com/gpu", "replicas": 4}]
    assert slicing["renameByDefault"] is True
    assert "renameByDefault" not in json.loads(config)["flags"]
    (pod,) = kubectl("pods --namespace nvidia-device-plugin")["items"]
    assert pod["metadata"]["annotations"]["gpunode.serving/config-sha256"]


def test_the_runtime_class_is_still_that_of_k3s(kubectl: Any) -> None:
    managers = {entry["manager"] for entry in kubectl("runtimeclass nvidia --show-managed-fields")["metadata"]["managedFields"]}
    assert "gpunode" not in managers


def test_what_was_applied_is_recorded_for_the_reset(kubectl: Any) -> None:
    record = kubectl("configmap nvidia-device-plugin-inventory --namespace nvidia-device-plugin")
    kinds = [entry["kind"] for entry in json.loads(record["data"]["objects"])]
    assert kinds == ["Namespace", "Node", "ServiceAccount", "ConfigMap", "DaemonSet"]
