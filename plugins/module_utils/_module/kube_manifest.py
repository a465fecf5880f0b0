"""Body of the module kube_manifest: plan, apply, wait, result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from .._clock import Clock, SystemClock
from .._errors import ApiUnreachableError
from .._failures import Baseline, explain_log
from .._kube import ClusterKube, Kube
from .._objects import KubeObject, Ref, complete, namespaced_by_table, secret_values
from .._plan import Action, ManifestSet, Step, apply_set, difference, plan_absent, plan_present, predict, remove_set
from .._readiness import Readiness
from .._wait import SetState, Waited, baseline, explain_timeout, wait_for_absence, wait_for_set
from .common import KUBECONFIG, guarded

ARGUMENT_SPEC: dict[str, Any] = {
    **KUBECONFIG,
    "name": {"type": "str", "required": True},
    "manifests": {"type": "list", "elements": "dict", "default": []},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "namespace": {"type": "str", "default": "default"},
    "field_manager": {"type": "str", "default": "gpunode"},
    "force_conflicts": {"type": "bool", "default": False},
    "prune": {"type": "bool", "default": True},
    "wait": {"type": "bool", "default": True},
    "wait_timeout": {"type": "int", "default": 300},
}

LOG_LINES = 25


def run_module(module: AnsibleModule, connect: Callable[[str], Kube] = ClusterKube, clock: Clock | None = None) -> None:
    """Run the module to its end.

    :param connect: makes the seam to the API server from a kubeconfig path
    """
    module.no_log_values.update(secret_values(module.params["manifests"]))
    guarded(module, lambda: _run(module, connect, clock or SystemClock()), objects=[])


def _run(module: AnsibleModule, connect: Callable[[str], Kube], clock: Clock) -> Mapping[str, Any]:
    params, absent = module.params, module.params["state"] == "absent"
    try:
        kube = connect(params["kubeconfig"])
    except ApiUnreachableError as error:
        if not module.check_mode:
            raise
        module.warn(f"{error} In check mode this means: everything {'is absent' if absent else 'would be created'}.")
        wanted = _wanted(params, namespaced_by_table)
        return _result([] if absent else predict(wanted), {})

    wanted = _wanted(params, kube.namespaced)
    steps = plan_absent(kube, wanted) if absent else plan_present(kube, wanted, predict_absent_namespaces=module.check_mode)
    if module.check_mode:
        return _result(steps, {})
    if absent:
        remove_set(kube, steps, wanted)
        return _after_removal(kube, steps, params, clock)
    before = baseline(kube, [step.ref for step in steps])
    apply_set(kube, steps, wanted)
    return _after_apply(kube, steps, params, clock, before)


def _wanted(params: Mapping[str, Any], namespaced: Callable[[str, str], bool]) -> ManifestSet:
    return ManifestSet(
        name=params["name"],
        namespace=params["namespace"],
        objects=complete(params["manifests"], params["namespace"], namespaced),
        manager=params["field_manager"],
        force=params["force_conflicts"],
        prune=params["prune"],
    )


def _after_apply(
    kube: Kube, steps: Sequence[Step], params: Mapping[str, Any], clock: Clock, before: Baseline
) -> Mapping[str, Any]:
    gone = _after_removal(kube, steps, params, clock)
    refs = [step.ref for step in steps if step.wanted is not None]
    if gone.get("failed") or not params["wait"] or not refs:
        return gone
    waited = wait_for_set(kube, refs, before, clock, params["wait_timeout"])
    result = {**_result(steps, waited.last.states), **_duration(waited)}
    return result if waited.done and waited.last.failure is None else {**result, **_not_ready(kube, waited, params)}


def _not_ready(kube: Kube, waited: Waited[SetState], params: Mapping[str, Any]) -> dict[str, Any]:
    attempted = f"Waiting for set {params['name']} to become ready"
    failure = waited.last.failure
    if failure is None:
        late = ", ".join(f"{ref}: {state.seen}" for ref, state in waited.last.states.items() if not state.ready)
        why = explain_timeout(kube, waited.last)
        remedy = why or "Look at the named objects with kubectl describe, or raise wait_timeout."
        return {"failed": True, "msg": f"{attempted}: not ready after {waited.elapsed:.0f} s ({late}). {remedy}"}
    log = _last_log(kube, failure.ref, failure.container)
    remedy = explain_log("\n".join(log)) or failure.remedy
    return {
        "failed": True,
        "msg": f"{attempted}: stopped after {waited.elapsed:.0f} s because {failure.ref}: {failure.seen}. {remedy}",
        "log": log,
    }


def _last_log(kube: Kube, pod: Ref, container: str | None) -> list[str]:
    if container is None or pod.namespace is None:
        return []
    texts = (kube.log(pod.namespace, pod.name, container, lines=LOG_LINES, previous=previous) for previous in (True, False))
    return next((text.splitlines() for text in texts if text.strip()), [])


def _after_removal(kube: Kube, steps: Sequence[Step], params: Mapping[str, Any], clock: Clock) -> Mapping[str, Any]:
    leaving = [step.ref for step in steps if step.action is Action.DELETE]
    result = _result(steps, {})
    if not leaving or not params["wait"]:
        return result
    waited = wait_for_absence(kube, leaving, clock, params["wait_timeout"])
    result = {**result, **_duration(waited)}
    if waited.done:
        return result
    left = ", ".join(str(ref) for ref in waited.last)
    return {
        **result,
        "failed": True,
        "msg": f"Deleting objects of set {params['name']}: still there after {waited.elapsed:.0f} s ({left}). "
        "See their finalizers and the Pods that still use them, or raise wait_timeout.",
    }


def _duration(waited: Waited[Any]) -> dict[str, Any]:
    return {"elapsed": round(waited.elapsed, 1), "attempts": waited.attempts}


def _result(steps: Sequence[Step], states: Mapping[Ref, Readiness]) -> dict[str, Any]:
    return {
        "changed": any(step.changes for step in steps),
        "objects": [_object(step, states.get(step.ref)) for step in steps],
        "diff": difference(steps),
        "elapsed": 0.0,
        "attempts": 0,
    }


def _object(step: Step, state: Readiness | None) -> KubeObject:
    seen = {} if state is None else {"ready": state.ready, "seen": state.seen}
    return {**step.ref.as_dict(), "action": step.action.value, **seen}
