"""Readiness of live objects, by kind."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils._readiness import readiness


def deployment(**status: int) -> dict[str, Any]:
    return {"kind": "Deployment", "metadata": {"generation": 2}, "spec": {"replicas": 1}, "status": status}


READY = {"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}


@pytest.mark.parametrize(
    ("status", "ready", "seen"),
    [
        (READY, True, "1 of 1 replicas updated, 1 available, 1 in all"),
        ({**READY, "observedGeneration": 1}, False, "generation 2 not observed yet (status is of 1)"),
        ({**READY, "replicas": 2}, False, "1 of 1 replicas updated, 1 available, 2 in all"),
        ({**READY, "availableReplicas": 0}, False, "1 of 1 replicas updated, 0 available, 1 in all"),
        ({}, False, "generation 2 not observed yet (status is of 0)"),
    ],
)
def test_a_deployment_is_ready_when_all_its_replicas_are_of_this_generation(
    status: dict[str, int], ready: bool, seen: str
) -> None:
    state = readiness(deployment(**status))
    assert (state.ready, state.seen) == (ready, seen)


def test_a_daemon_set_of_a_real_cluster_is_ready(load) -> None:
    state = readiness(load("sim-node/plugin-daemonset.json"))
    assert (state.ready, state.seen) == (True, "on 1 of 1 nodes updated, on 1 available")


def test_a_daemon_set_that_selects_no_node_is_not_ready(load) -> None:
    live = load("sim-node/plugin-daemonset.json")
    live["status"] = {"observedGeneration": 1, "desiredNumberScheduled": 0, "numberReady": 0}
    state = readiness(live)
    assert not state.ready
    assert "selects no node" in state.seen


@pytest.mark.parametrize(
    ("fixture", "ready"),
    [
        ("vllm-0.32.0-cpu-pod/pod-ready-final.json", True),
        ("vllm-0.32.0-cpu-pod/pod-crashloop-shm.json", False),
        ("sim-node/pod-5th-pending.json", False),
        ("sim-node/pod-asks-2.json", False),
    ],
)
def test_pods_of_real_clusters(load, fixture: str, ready: bool) -> None:
    assert readiness(load(fixture)).ready is ready


@pytest.mark.parametrize(
    ("kind", "status", "ready"),
    [
        ("Namespace", {"phase": "Active"}, True),
        ("Namespace", {"phase": "Terminating"}, False),
        ("PersistentVolumeClaim", {"phase": "Pending"}, False),
        ("PersistentVolumeClaim", {"phase": "Bound"}, True),
        ("PersistentVolume", {"phase": "Available"}, True),
        ("PersistentVolume", {"phase": "Released"}, False),
        ("Job", {"conditions": [{"type": "Complete", "status": "True"}]}, True),
        ("Job", {}, False),
        ("CustomResourceDefinition", {"conditions": [{"type": "Established", "status": "True"}]}, True),
        ("ConfigMap", {}, True),
    ],
)
def test_other_kinds(kind: str, status: dict[str, Any], ready: bool) -> None:
    assert readiness({"kind": kind, "metadata": {}, "status": status}).ready is ready


def test_an_absent_object_is_not_ready() -> None:
    assert readiness(None).seen == "does not exist"


def test_a_stateful_set() -> None:
    live = {"kind": "StatefulSet", "metadata": {"generation": 1}, "spec": {"replicas": 2}}
    assert not readiness({**live, "status": {"observedGeneration": 1, "updatedReplicas": 2, "readyReplicas": 1}}).ready
    assert readiness({**live, "status": {"observedGeneration": 1, "updatedReplicas": 2, "readyReplicas": 2}}).ready
