"""Waiting: until done, until hopeless, until time is up; and what belongs to a workload."""

from __future__ import annotations

from typing import Any

from ansible_collections.gpunode.serving.plugins.module_utils._evidence import gather
from ansible_collections.gpunode.serving.plugins.module_utils._failures import NOTHING_BEFORE, Baseline
from ansible_collections.gpunode.serving.plugins.module_utils._objects import Ref
from ansible_collections.gpunode.serving.plugins.module_utils._wait import (
    baseline,
    explain_timeout,
    observe,
    wait_for_absence,
    wait_for_set,
    wait_until,
)

REVISION = {"deployment.kubernetes.io/revision": "2"}


def meta(name: str, owner: str = "", **more: Any) -> dict[str, Any]:
    owners = {"ownerReferences": [{"uid": owner}]} if owner else {}
    return {"name": name, "namespace": "llm", "uid": name, **owners, **more}


def add_deployment(kube: Any, reason: str = "ContainerCreating") -> Ref:
    kube.add(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": meta("web", annotations=REVISION, generation=1),
            "spec": {"replicas": 1},
            "status": {"observedGeneration": 1, "updatedReplicas": 1, "replicas": 1},
        }
    )
    for name, revision in (("old", "1"), ("new", "2")):
        annotations = {"deployment.kubernetes.io/revision": revision}
        kube.add({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": meta(name, "web", annotations=annotations)})
        status = {"name": "c", "image": "img:1", "restartCount": 3, "state": {"waiting": {"reason": reason}}}
        kube.add(
            {"apiVersion": "v1", "kind": "Pod", "metadata": meta(f"{name}-pod", name), "status": {"containerStatuses": [status]}}
        )
    kube.add({"apiVersion": "v1", "kind": "Pod", "metadata": meta("stranger"), "status": {}})
    return Ref("apps/v1", "Deployment", "web", "llm")


def become_ready(kube: Any, ref: Ref) -> None:
    kube.objects[ref]["status"].update(updatedReplicas=1, availableReplicas=1, replicas=1)


def test_waiting_ends_with_the_wanted_observation(clock) -> None:
    seen = iter([1, 2, 3])
    waited = wait_until(lambda: next(seen), lambda value: value == 3, clock, 60)
    assert (waited.last, waited.attempts, waited.done) == (3, 3, True)
    assert 1 <= waited.elapsed < 2


def test_waiting_ends_with_the_last_observation_when_time_is_up(clock) -> None:
    waited = wait_until(lambda: "no", lambda value: False, clock, 10)
    assert not waited.done
    assert waited.last == "no"
    assert 7 <= waited.elapsed <= 10
    assert waited.attempts < 10, "the intervals must grow"


def test_with_no_time_at_all_there_is_one_look(clock) -> None:
    assert wait_until(lambda: 1, lambda value: True, clock, 0).done
    assert wait_until(lambda: 1, lambda value: False, clock, 0).attempts == 1


def test_only_pods_of_the_current_revision_count(kube) -> None:
    found = gather(kube, kube.read(add_deployment(kube)))
    assert [owner["metadata"]["name"] for owner in found.owners] == ["new"]
    assert [pod["metadata"]["name"] for pod in found.pods] == ["new-pod"]


def test_pods_of_a_daemon_set_count_by_template_generation(kube, load) -> None:
    live = kube.add(load("sim-node/plugin-daemonset.json"))
    for name, generation in (("a", "1"), ("b", "2")):
        labels = {"pod-template-generation": generation}
        obj = {**meta(name, live["metadata"]["uid"], labels=labels), "namespace": "kube-system"}
        kube.add({"apiVersion": "v1", "kind": "Pod", "metadata": obj})
    assert [pod["metadata"]["name"] for pod in gather(kube, live).pods] == ["a"]


def test_a_set_becomes_ready_while_waiting(kube, clock) -> None:
    ref = add_deployment(kube)
    clock.on_sleep = lambda: become_ready(kube, ref)
    waited = wait_for_set(kube, [ref], NOTHING_BEFORE, clock, 60)
    assert waited.done
    assert waited.last.ready
    assert waited.last.states[ref].seen == "1 of 1 replicas updated, 1 available, 1 in all"


def test_a_failure_ends_the_wait_at_once(kube, clock) -> None:
    ref = add_deployment(kube, "ErrImageNeverPull")
    waited = wait_for_set(kube, [ref], NOTHING_BEFORE, clock, 60)
    assert waited.elapsed == 0
    assert waited.last.failure is not None
    assert str(waited.last.failure.ref) == "Pod llm/new-pod"


def test_a_ready_workload_with_an_old_failed_pod_is_ready(kube) -> None:
    ref = add_deployment(kube, "ErrImageNeverPull")
    become_ready(kube, ref)
    assert observe(kube, [ref], NOTHING_BEFORE).failure is None


def test_the_baseline_is_taken_of_workloads_that_exist(kube) -> None:
    ref = add_deployment(kube, "CrashLoopBackOff")
    before = baseline(kube, [ref, Ref("v1", "Service", "web", "llm"), Ref("apps/v1", "Deployment", "absent", "llm")])
    assert before.restarts == {("new-pod", "c"): 3}
    assert observe(kube, [ref], before).failure is None
    assert observe(kube, [ref], Baseline()).failure is not None


def test_a_wait_that_ran_out_is_explained_by_old_signs_too(kube) -> None:
    ref = add_deployment(kube, "CrashLoopBackOff")
    state = observe(kube, [ref], baseline(kube, [ref]))
    assert explain_timeout(kube, state).startswith("Pod llm/new-pod: container c keeps ending")


def test_absence_is_waited_for_and_what_is_left_is_named(kube, clock) -> None:
    ref = add_deployment(kube)
    assert wait_for_absence(kube, [ref], clock, 5).last == [ref]
    clock.on_sleep = lambda: kube.delete(ref)
    assert wait_for_absence(kube, [ref], clock, 5).done


def test_pods_of_the_old_generation_are_no_reason_to_stop(kube) -> None:
    ref = add_deployment(kube, "ErrImageNeverPull")
    kube.objects[ref]["metadata"]["generation"] = 2
    state = observe(kube, [ref], NOTHING_BEFORE)
    assert not state.ready
    assert state.failure is None
