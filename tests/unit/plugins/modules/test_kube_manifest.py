"""The module kube_manifest as a whole: its result in every mode."""

from __future__ import annotations

from typing import Any

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpunode.serving.plugins.module_utils._module.kube_manifest import ARGUMENT_SPEC
from ansible_collections.gpunode.serving.plugins.module_utils._module.kube_manifest import run_module as body
from ansible_collections.gpunode.serving.plugins.module_utils._objects import Ref

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "llm"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t"}, "stringData": {"token": "hf_private"}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}
SET = {"name": "web", "namespace": "llm"}


@pytest.fixture
def call(run_module, kube, clock) -> Any:
    """Run the module against the API server in memory, where namespaces become active at once."""
    add = kube.add

    def active(obj: dict[str, Any]) -> dict[str, Any]:
        return add({**obj, "status": {"phase": "Active"}} if obj["kind"] == "Namespace" else obj)

    kube.add = active

    def run(*manifests: Any, **options: Any) -> Any:
        arguments = {**SET, "manifests": list(manifests), **options}
        return run_module(body, ARGUMENT_SPEC, arguments, connect=lambda path: kube, clock=clock)

    return run


def test_objects_are_applied_and_reported_with_what_was_seen(call) -> None:
    result = call(NAMESPACE)
    assert result["changed"] is True
    assert result["objects"] == [
        {"api_version": "v1", "kind": "Namespace", "name": "llm", "action": "create", "ready": True, "seen": "phase Active"}
    ]
    assert result["attempts"] == 1
    assert call(NAMESPACE)["changed"] is False


def test_check_mode_changes_nothing_and_predicts_the_same(call, kube) -> None:
    predicted = call(NAMESPACE, SECRET, _ansible_check_mode=True)
    assert kube.writes == []
    done = call(NAMESPACE, SECRET)
    assert [entry["action"] for entry in predicted["objects"]] == [entry["action"] for entry in done["objects"]]
    assert predicted["diff"] == done["diff"]


def test_check_mode_without_a_cluster_predicts_creation_and_says_why(run_module, no_cluster, monkeypatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(AnsibleModule, "warn", lambda self, text: said.append(text))
    arguments = {**SET, "manifests": [NAMESPACE], "_ansible_check_mode": True}
    result = run_module(body, ARGUMENT_SPEC, arguments, connect=no_cluster)
    assert result["changed"] is True
    assert result["objects"][0]["action"] == "create"
    assert said[0].endswith("In check mode this means: everything would be created.")


def test_removing_in_check_mode_without_a_cluster_changes_nothing(run_module, no_cluster) -> None:
    arguments = {**SET, "state": "absent", "_ansible_check_mode": True}
    result = run_module(body, ARGUMENT_SPEC, arguments, connect=no_cluster)
    assert (result["changed"], result["objects"]) == (False, [])


def test_without_a_cluster_the_module_fails_with_the_remedy(run_module, no_cluster) -> None:
    result = run_module(body, ARGUMENT_SPEC, SET, connect=no_cluster)
    assert result["failed"] is True
    assert result["msg"] == ("Connecting to /etc/rancher/k3s/k3s.yaml: no usable answer (refused). See `systemctl status k3s`.")


def test_a_failure_is_told_with_object_reason_remedy_and_log(call, kube) -> None:
    call(NAMESPACE)
    status = {
        "name": "c",
        "restartCount": 2,
        "state": {"waiting": {"reason": "CrashLoopBackOff"}},
        "lastState": {"terminated": {"exitCode": 1}},
    }
    add = kube.add
    kube.add = lambda obj: add(
        {**obj, "status": {"phase": "Running", "containerStatuses": [status]}} if obj["kind"] == "Pod" else obj
    )
    kube.logs["p", "c", True] = "start\nPermissionError: [Errno 13] Permission denied: '/.cache'\n"
    result = call(NAMESPACE, POD)
    assert result["failed"] is True
    assert result["msg"] == (
        "Waiting for set web to become ready: stopped after 0 s because Pod llm/p: container c keeps ending "
        "(exit code 1, 2 restarts). The engine's user may not write /.cache: check the owner of the cache folder and HF_HOME."
    )
    assert result["log"][-1].startswith("PermissionError")
    assert result["objects"][-1]["seen"] == "phase Running, ready False"


def test_a_wait_that_runs_out_names_what_is_late(call, kube) -> None:
    result = call(NAMESPACE, POD, wait_timeout=5)
    assert result["failed"] is True
    assert "not ready after 5 s (Pod llm/p: phase unknown, ready False)" in result["msg"]
    assert "raise wait_timeout" in result["msg"]
    assert result["attempts"] > 2


def test_without_waiting_nothing_is_judged(call) -> None:
    result = call(NAMESPACE, POD, wait=False)
    assert "failed" not in result
    assert "ready" not in result["objects"][-1]


def test_removal_waits_and_names_what_stays(call, kube) -> None:
    call(NAMESPACE, SECRET)
    assert call(state="absent")["changed"] is True
    assert Ref("v1", "Namespace", "llm") not in kube.objects
    call(NAMESPACE)
    kube.delete = lambda ref, **options: None
    result = call(state="absent", wait_timeout=5)
    assert result["failed"] is True
    assert "still there after 5 s (Namespace llm). See their finalizers" in result["msg"]


def test_values_of_secrets_stay_out_of_every_output(call, capsys) -> None:
    result = call(NAMESPACE, SECRET)
    assert "hf_private" not in str(result)


def test_a_refusal_is_told_in_the_servers_words(call, kube) -> None:
    kube.refuse[Ref("v1", "Pod", "p", "llm")] = (403, 'pods "p" is forbidden: violates PodSecurity "baseline:latest"')
    call(NAMESPACE)
    result = call(NAMESPACE, POD)
    assert result["msg"].startswith('Applying Pod llm/p: pods "p" is forbidden: violates PodSecurity "baseline:latest". ')
    assert result["objects"] == []
