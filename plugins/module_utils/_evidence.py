"""Collecting what belongs to a workload: its current ReplicaSet, its Pods and their events."""

from __future__ import annotations

from ._failures import Evidence
from ._kube import Kube
from ._objects import KubeObject

REVISION = "deployment.kubernetes.io/revision"
TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"
WORKLOADS = frozenset({"DaemonSet", "Deployment", "Job", "Pod", "StatefulSet"})


def gather(kube: Kube, workload: KubeObject) -> Evidence:
    """Evidence about a live workload. Pods of older revisions are left out: their troubles are over or not ours."""
    namespace = workload["metadata"]["namespace"]
    owners: list[KubeObject] = []
    if workload["kind"] == "Deployment":
        owners = _current_replica_sets(kube, workload)
    if workload["kind"] == "Pod":
        pods = [workload]
    else:
        parents = owners or ([] if workload["kind"] == "Deployment" else [workload])
        pods = [pod for pod in kube.list("v1", "Pod", namespace) if _owned_by(pod, parents) and _of_revision(pod, workload)]
    concerned = {obj["metadata"]["uid"] for obj in (workload, *owners, *pods)}
    events = [e for e in kube.list("v1", "Event", namespace) if e.get("involvedObject", {}).get("uid") in concerned]
    return Evidence(workload, owners, pods, events)


def _current_replica_sets(kube: Kube, deployment: KubeObject) -> list[KubeObject]:
    revision = (deployment["metadata"].get("annotations") or {}).get(REVISION)
    return [
        item
        for item in kube.list("apps/v1", "ReplicaSet", deployment["metadata"]["namespace"])
        if _owned_by(item, [deployment]) and (item["metadata"].get("annotations") or {}).get(REVISION) == revision
    ]


def _owned_by(obj: KubeObject, parents: list[KubeObject]) -> bool:
    uids = {parent["metadata"]["uid"] for parent in parents}
    return any(owner.get("uid") in uids for owner in obj["metadata"].get("ownerReferences") or [])


def _of_revision(pod: KubeObject, workload: KubeObject) -> bool:
    if workload["kind"] != "DaemonSet":
        return True
    wanted = (workload["metadata"].get("annotations") or {}).get(TEMPLATE_GENERATION)
    label = (pod["metadata"].get("labels") or {}).get("pod-template-generation")
    return wanted is None or label is None or wanted == label
