"""Telling a workload that will never be ready from one that is slow; objects and texts of real clusters."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils._failures import (
    Baseline,
    Evidence,
    explain_log,
    first_failure,
    last_sign,
)

WORKLOAD = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "w", "namespace": "default", "uid": "w"}}


def evidence(*pods: dict[str, Any], owners: tuple[Any, ...] = (), events: tuple[Any, ...] = ()) -> Evidence:
    return Evidence(WORKLOAD, owners, pods, events)


def event(obj: dict[str, Any], reason: str, message: str, version: str = "1") -> dict[str, Any]:
    return {
        "metadata": {"uid": f"{reason}-{obj['metadata']['uid']}", "resourceVersion": version},
        "involvedObject": {"uid": obj["metadata"]["uid"]},
        "type": "Warning",
        "reason": reason,
        "message": message,
    }


def line_with(text: str, reason: str) -> str:
    """The message of the first event of a kind in `kubectl describe` output."""
    line = next(line for line in text.splitlines() if reason in line)
    return re.split(r"\s{2,}", line.strip())[-1]


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    status = {"name": "c", "image": "img:1", "restartCount": 0, "state": {"waiting": {"reason": reason, "message": message}}}
    meta = {"name": "p", "namespace": "default", "uid": "p"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": {"phase": "Pending", "containerStatuses": [status]}}


def test_a_crash_loop_is_named_with_its_container(load) -> None:
    failure = first_failure(evidence(load("vllm-0.32.0-cpu-pod/pod-crashloop-shm.json")))
    assert failure is not None
    assert failure.seen == "container vllm keeps ending (exit code 1, 4 restarts)"
    assert failure.container == "vllm"


def test_restarts_of_before_the_wait_are_no_news(load) -> None:
    before = evidence(load("vllm-0.32.0-cpu-pod/pod-crashloop-shm.json"))
    assert first_failure(before, Baseline.of([before])) is None


def test_an_oom_kill_is_named_with_the_limit(load) -> None:
    failure = first_failure(evidence(load("vllm-0.32.0-cpu-pod/pod-memlimit-1Gi.json")))
    assert failure is not None
    assert failure.seen == "container vllm was OOMKilled (memory limit 1Gi)"
    assert failure.remedy == "Raise its memory limit, or let it use less."


def test_a_ready_pod_is_no_failure(load) -> None:
    assert first_failure(evidence(load("vllm-0.32.0-cpu-pod/pod-ready-final.json"))) is None


@pytest.mark.parametrize(
    ("fixture", "seen", "remedy"),
    [
        ("runtimeclass-handler-missing.events.txt", 'no runtime for "ghost" is configured', "containerd has no handler ghost"),
        ("runtime-binary-missing.events.txt", "fork/exec", "The runtime /opt/kube/nvidia-container-runtime-gone is gone"),
    ],
)
def test_a_sandbox_that_cannot_be_made(load, text, fixture: str, seen: str, remedy: str) -> None:
    pod = load("sim-node/runtimeclass-handler-missing.pod.json")
    message = line_with(text(f"sim-node/{fixture}"), "FailedCreatePodSandBox")
    failure = first_failure(evidence(pod, events=(event(pod, "FailedCreatePodSandBox", message),)))
    assert failure is not None
    assert failure.remedy.startswith(remedy)
    assert seen in message


def test_k01_the_other_wording_of_a_missing_handler(load, text) -> None:
    pod = load("sim-node/runtimeclass-handler-missing.pod.json")
    message = line_with(text("cases/K01-events.txt"), "FailedCreatePodSandBox")
    failure = first_failure(evidence(pod, events=(event(pod, "FailedCreatePodSandBox", message),)))
    assert failure is not None
    assert "install nvidia-container-toolkit, then restart k3s" in failure.remedy


def test_an_event_of_before_the_wait_counts_only_when_it_comes_again(load, text) -> None:
    pod = load("sim-node/runtimeclass-handler-missing.pod.json")
    message = line_with(text("sim-node/runtimeclass-handler-missing.events.txt"), "FailedCreatePodSandBox")
    old = evidence(pod, events=(event(pod, "FailedCreatePodSandBox", message),))
    again = evidence(pod, events=(event(pod, "FailedCreatePodSandBox", message, version="2"),))
    before = Baseline.of([old])
    assert first_failure(old, before) is None
    assert first_failure(again, before) is not None


def test_a_runtime_class_that_does_not_exist_shows_on_the_replica_set(load, text) -> None:
    owner = load("sim-node/runtimeclass-object-missing.replicaset.json")
    message = line_with(text("sim-node/runtimeclass-object-missing.replicaset.events.txt"), "FailedCreate ")
    failure = first_failure(evidence(owners=(owner,), events=(event(owner, "FailedCreate", message),)))
    assert failure is not None
    assert failure.remedy.startswith("Create RuntimeClass nvidia-nope, or name an existing one")


def test_a_device_node_that_is_missing(load, text) -> None:
    pod = load("sim-node/runtimeclass-handler-missing.pod.json")
    message = line_with(text("sim-node/dev-nvidia0-missing.events.txt"), "  Failed ")
    failure = first_failure(evidence(pod, events=(event(pod, "Failed", message),)))
    assert failure is not None
    assert failure.remedy.startswith("/dev/nvidia0 is missing on the node")


@pytest.mark.parametrize("fixture", ["sim-node/pod-asks-2.json", "gpu-access-h200/request-two.json"])
def test_a_request_of_two_slices_stops_at_the_first_rejected_pod(load, fixture: str) -> None:
    failure = first_failure(evidence(load(fixture)))
    assert failure is not None
    assert "maximum request size for shared resources is 1; found 2" in failure.seen
    assert failure.remedy == "Ask for exactly 1 of a shared GPU."


def test_p10_a_pod_rejected_while_the_plugin_was_away_is_not_yet_a_reason_to_stop(load) -> None:
    ghost = load("sim-node/pod-admitted-while-plugin-down.json")
    assert ghost["status"]["reason"] == "UnexpectedAdmissionError"
    assert first_failure(evidence(ghost)) is None
    failure = first_failure(evidence(ghost, ghost, ghost))
    assert failure is not None
    assert "(3 rejected so far)" in failure.seen
    assert failure.remedy == "See the device plugin's log and the node's allocatable GPUs."


@pytest.mark.parametrize(
    ("reason", "message", "remedy"),
    [
        ("ErrImageNeverPull", "", "Import img:1 into the node's containerd, or let it be pulled."),
        ("ImagePullBackOff", "manifest unknown", "Check the name img:1, the node's way to the registry, and its credentials."),
        ("CreateContainerConfigError", 'secret "t" not found', "Create the ConfigMap or Secret that it names."),
        ("InvalidImageName", "", "Correct the image name img:1."),
    ],
)
def test_containers_that_cannot_start(reason: str, message: str, remedy: str) -> None:
    failure = first_failure(evidence(waiting(reason, message)))
    assert failure is not None
    assert failure.remedy == remedy


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("ImagePullBackOff", "429 Too Many Requests - toomanyrequests: You have reached your pull rate limit"),
        ("ImagePullBackOff", "net/http: TLS handshake timeout"),
        ("ErrImagePull", "manifest unknown"),
        ("ContainerCreating", ""),
        ("PodInitializing", ""),
    ],
)
def test_what_may_still_pass_is_waited_for(reason: str, message: str) -> None:
    assert first_failure(evidence(waiting(reason, message))) is None


def test_a_pod_that_is_being_deleted_is_left_alone() -> None:
    pod = waiting("ErrImageNeverPull")
    pod["metadata"]["deletionTimestamp"] = "2026-12-01T00:00:00Z"
    assert first_failure(evidence(pod)) is None


def test_the_roll_outs_own_deadline_is_a_failure() -> None:
    condition = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out."}
    passed = Evidence({**WORKLOAD, "status": {"conditions": [condition]}})
    failure = first_failure(passed)
    assert failure is not None
    assert failure.seen == "ProgressDeadlineExceeded: timed out"
    assert first_failure(passed, Baseline.of([passed])) is None, "the mark of an earlier roll-out is no news"


def test_a_bare_pod_that_failed_and_a_job_that_failed() -> None:
    meta = {"name": "j", "namespace": "default", "uid": "j"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": meta,
        "status": {"conditions": [{"type": "Failed", "status": "True"}]},
    }
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "status": {"phase": "Failed", "reason": "Evicted", "message": "disk"},
    }
    assert [getattr(first_failure(Evidence(obj)), "seen", "") for obj in (job, pod)] == [
        "condition Failed",
        "phase Failed (Evicted: disk)",
    ]


def test_a_pod_without_room_is_pending_and_the_schedulers_words_are_kept(load) -> None:
    pod = load("sim-node/pod-5th-pending.json")
    assert first_failure(evidence(pod)) is None
    assert "is not scheduled: 0/1 nodes are available: 1 Insufficient nvidia.com/gpu.shared" in last_sign(evidence(pod))


def test_without_anything_pending_the_latest_warning_is_kept() -> None:
    pod = waiting("ContainerCreating")
    early = {**event(pod, "Unhealthy", "first"), "lastTimestamp": "2026-12-01T00:00:00Z"}
    late = {**event(pod, "BackOff", "second"), "lastTimestamp": "2026-12-01T00:01:00Z"}
    assert last_sign(evidence(pod, events=(late, early))) == "last warning, BackOff: second"
    assert last_sign(evidence()) == ""


@pytest.mark.parametrize(
    ("fixture", "part", "words"),
    [
        ("vllm-0.32.0-cpu-pod/startup-fail-shm-64MiB.log", 0, "shared memory is too small (64 MiB free, 160 MiB needed)"),
        ("cases/L01.log", 0, "The GPU had 59.32 of 79.15 GiB free and 71.24 GiB were asked for"),
        ("cases/L01.log", 1, "The GPU had 36.75 of 121.63 GiB free and 103.38 GiB were asked for"),
        ("cases/L03.log", 0, "Nothing is left for the KV cache"),
        ("cases/L06.log", 0, "may not write /.cache"),
        ("cases/L12.log", 0, "A Service named vllm sets VLLM_PORT"),
        ("cases/L16.log", 0, "check runtimeClassName, then the GPU limit, then libcuda"),
    ],
)
def test_known_texts_of_the_engine_are_explained(text, fixture: str, part: int, words: str) -> None:
    assert words in explain_log(text(fixture).split("---")[part])


def test_l04_three_wordings_of_a_kv_cache_that_is_too_small(text) -> None:
    lines = [line for line in text("cases/L04.log").splitlines() if line.startswith("ValueError")]
    assert [explain_log(line) for line in lines] == [
        "The KV cache is too small for max-model-len: 3664 would fit.",
        "The KV cache is too small for max-model-len: 24.00 GiB needed, 9.97 GiB there. Lower it.",
        "The KV cache is too small for max-model-len: 34736 would fit.",
    ]


def test_l05_no_token_and_no_licence_are_told_apart(text) -> None:
    no_token, no_licence = text("cases/L05.log").split("# 403")
    assert "give vllm_server_hf_token a token" in explain_log(no_token)
    assert "accept its licence" in explain_log(no_licence)


def test_an_unknown_log_is_not_explained() -> None:
    assert explain_log("INFO: Started server process [1]") == ""
