"""Whether an object has become what it was declared to be. Pure predicates, one for each kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ._objects import KubeObject


@dataclass(frozen=True)
class Readiness:
    """Verdict over one object.

    :param seen: what the verdict rests on, in words
    """

    ready: bool
    seen: str


def readiness(obj: KubeObject | None) -> Readiness:
    """Judge a live object by its kind; a kind without a rule of its own is ready once it exists."""
    if obj is None:
        return Readiness(False, "does not exist")
    return RULES.get(obj["kind"], _exists)(obj)


def _exists(_obj: KubeObject) -> Readiness:
    return Readiness(True, "exists")


def is_stale(obj: KubeObject) -> bool:
    """Whether the status is of an older generation: it says nothing about what was just applied."""
    wanted, seen = _generations(obj)
    return seen < wanted


def _generations(obj: KubeObject) -> tuple[int, int]:
    return obj["metadata"].get("generation", 0), obj.get("status", {}).get("observedGeneration", 0)


def _lag(obj: KubeObject) -> Readiness | None:
    wanted, seen = _generations(obj)
    return Readiness(False, f"generation {wanted} not observed yet (status is of {seen})") if is_stale(obj) else None


def _deployment(obj: KubeObject) -> Readiness:
    status, wanted = obj.get("status", {}), obj["spec"].get("replicas", 1)
    updated, available, total = (status.get(key, 0) for key in ("updatedReplicas", "availableReplicas", "replicas"))
    done = updated == available == total == wanted
    return _lag(obj) or Readiness(done, f"{updated} of {wanted} replicas updated, {available} available, {total} in all")


def _daemon_set(obj: KubeObject) -> Readiness:
    status = obj.get("status", {})
    wanted, updated, available = (
        status.get(key, 0) for key in ("desiredNumberScheduled", "updatedNumberScheduled", "numberAvailable")
    )
    lag = _lag(obj)
    if lag is None and wanted == 0:
        return Readiness(False, "it selects no node (desired 0): see the node's labels and taints")
    return lag or Readiness(updated == available == wanted, f"on {updated} of {wanted} nodes updated, on {available} available")


def _stateful_set(obj: KubeObject) -> Readiness:
    status, wanted = obj.get("status", {}), obj["spec"].get("replicas", 1)
    updated, ready = status.get("updatedReplicas", 0), status.get("readyReplicas", 0)
    return _lag(obj) or Readiness(updated == ready == wanted, f"{updated} of {wanted} replicas updated, {ready} ready")


def _pod(obj: KubeObject) -> Readiness:
    status = obj.get("status", {})
    ready = condition(obj, "Ready") == "True"
    return Readiness(ready or status.get("phase") == "Succeeded", f"phase {status.get('phase', 'unknown')}, ready {ready}")


def _job(obj: KubeObject) -> Readiness:
    status = obj.get("status", {})
    return Readiness(
        condition(obj, "Complete") == "True", f"{status.get('succeeded', 0)} succeeded, {status.get('failed', 0)} failed"
    )


def _phase(*wanted: str) -> Callable[[KubeObject], Readiness]:
    def rule(obj: KubeObject) -> Readiness:
        phase = obj.get("status", {}).get("phase", "unknown")
        return Readiness(phase in wanted, f"phase {phase}")

    return rule


def _definition(obj: KubeObject) -> Readiness:
    established = condition(obj, "Established")
    return Readiness(established == "True", f"condition Established is {established}")


def condition(obj: KubeObject, name: str) -> str:
    """Status of a condition: ``True``, ``False``, ``Unknown``, or ``absent`` when the object does not have it."""
    for entry in obj.get("status", {}).get("conditions") or []:
        if entry.get("type") == name:
            return str(entry.get("status"))
    return "absent"


RULES: dict[str, Callable[[KubeObject], Readiness]] = {
    "CustomResourceDefinition": _definition,
    "DaemonSet": _daemon_set,
    "Deployment": _deployment,
    "Job": _job,
    "Namespace": _phase("Active"),
    "PersistentVolume": _phase("Available", "Bound"),
    "PersistentVolumeClaim": _phase("Bound"),
    "Pod": _pod,
    "StatefulSet": _stateful_set,
}
