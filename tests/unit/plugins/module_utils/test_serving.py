"""Checking what is served: node, answers, endpoints, cluster DNS; a verdict is never a pass because a check could not run."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils import _serving
from ansible_collections.gpunode.serving.plugins.module_utils._checks import Verdict
from ansible_collections.gpunode.serving.plugins.module_utils._errors import LibraryError
from ansible_collections.gpunode.serving.plugins.module_utils._http import Answer
from ansible_collections.gpunode.serving.plugins.module_utils._serving import Target

TARGET = Target(namespace="llm", service="vllm-qwen", port=8000, model="tiny", image="docker.io/x/vllm:1", node="laba")
REFUSED = Answer(0, "[Errno 111] Connection refused", refused=True)
SILENT = Answer(0, "timed out")


@pytest.fixture
def served(text) -> dict[str, Answer]:
    """Answers of a real engine, by request."""
    found = re.findall(
        r"^== \w+ \S+:8000(\S+)\n(.*?)\n\[(\d+) ([\d.]+)s\]$", text("vllm-0.32.0-cpu-pod/requests-clusterip.txt"), re.S | re.M
    )
    first: dict[str, Answer] = {}
    for path, body, status, seconds in found:
        first.setdefault(path, Answer(int(status), body.strip(), float(seconds)))
    by_path = {"/health": "health", "/v1/models": "models", "/v1/chat/completions": "chat completion", "/version": "version"}
    return {name: first[path] for path, name in by_path.items()}


def slices(*endpoints: dict[str, Any]) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": "vllm-qwen"}
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "vllm-qwen-x", "namespace": "llm", "labels": labels},
        "ports": [{"name": "http", "port": 8000}],
        "endpoints": list(endpoints),
    }


def verdicts(checks: Any) -> dict[str, str]:
    return {check.name: check.verdict.value for check in checks}


def test_answers_of_a_real_engine_pass(served) -> None:
    checks = _serving.judge_all("here", served, TARGET)
    assert verdicts(checks) == {"health": "pass", "models": "pass", "chat completion": "pass"}
    assert checks[1].seen == "HTTP 200, tiny"
    assert checks[2].seen.startswith("16 tokens in 0.05 s: ")
    assert _serving.engine_version(served) == {"vllm": "0.32.0"}


def test_another_model_name_fails_and_the_served_one_is_shown(served) -> None:
    check = _serving.judge_models("here", served["models"], replace(TARGET, model="qwen2.5-3b"))
    assert (check.verdict, check.seen, check.expected) == (Verdict.FAIL, "HTTP 200, tiny", "model qwen2.5-3b")


@pytest.mark.parametrize(
    ("answer", "verdict", "seen"),
    [
        (Answer(503, ""), Verdict.FAIL, "HTTP 503, empty body"),
        (Answer(404, '{"error":{"message":"The model `x` does not exist."}}'), Verdict.FAIL, "HTTP 404, "),
        (Answer(200, "not json"), Verdict.FAIL, "HTTP 200, not json"),
        (Answer(200, "[]"), Verdict.FAIL, "HTTP 200, []"),
        (Answer(200, '{"choices": [], "usage": {"completion_tokens": 3}}'), Verdict.FAIL, "HTTP 200, "),
        (
            Answer(200, '{"choices": [{"message": {"content": ""}}], "usage": {"completion_tokens": 0}}'),
            Verdict.FAIL,
            "HTTP 200, ",
        ),
        (REFUSED, Verdict.FAIL, "connection refused"),
        (SILENT, Verdict.CANNOT_TELL, "no answer (timed out)"),
    ],
)
def test_completions_that_are_none(answer: Answer, verdict: Verdict, seen: str) -> None:
    check = _serving.judge_chat("here", answer, TARGET)
    assert check.verdict is verdict
    assert check.seen.startswith(seen)
    assert check.remedy


def test_a_completion_of_random_weights_is_shown_on_one_line() -> None:
    body = json.dumps({"choices": [{"message": {"content": "a\x08\n\ufffd b"}}], "usage": {"completion_tokens": 2}})
    assert _serving.judge_chat("here", Answer(200, body, 0.5), TARGET).seen == "2 tokens in 0.50 s: 'a � b'"


@pytest.mark.parametrize(
    ("fixture", "handler", "count"),
    [
        ("sim-node/node-after-plugin.json", "pass", "pass"),
        ("sim-node/node-plugin-gone.json", "pass", "fail"),
        ("sim-node/node-after-xid79.json", "pass", "fail"),
        ("gpu-access-h200/node-gpu.json", "pass", "pass"),
        ("cases/P02-node.json", "cannot_tell", "fail"),
    ],
)
def test_nodes_of_real_clusters(kube, load, fixture: str, handler: str, count: str) -> None:
    name = kube.add(load(fixture))["metadata"]["name"]
    found = _serving.check_node(kube, Target("llm", "s", 8000, "m", "i", node=name), lambda: 4)
    assert list(verdicts(found.checks).values()) == [handler, count]


def test_a_missing_handler_fails_with_what_is_there(kube, load) -> None:
    node = load("sim-node/node-after-plugin.json")
    node["status"]["runtimeHandlers"] = [{"name": ""}, {"name": "runc"}]
    check = _serving.judge_handler(node, TARGET)
    assert (check.verdict, check.seen) == (Verdict.FAIL, "(default), runc")
    assert "then restart k3s" in check.remedy


def test_without_a_known_promise_the_count_cannot_be_told(kube, load) -> None:
    kube.add(load("sim-node/node-after-plugin.json"))

    def unknown() -> int | None:
        raise LibraryError("Counting the node's GPUs", "nvidia-smi says command not found", "Run the role nvidia_driver first.")

    check = _serving.check_node(kube, TARGET, unknown).checks[1]
    assert check.verdict is Verdict.CANNOT_TELL
    assert check.seen == "4, but how many are promised is unknown: nvidia-smi says command not found"
    assert _serving.check_node(kube, TARGET, lambda: None).checks[1].verdict is Verdict.PASS


def test_a_node_that_cannot_be_chosen_cannot_be_told(kube) -> None:
    absent = _serving.check_node(kube, TARGET, lambda: 4)
    unnamed = _serving.check_node(kube, Target("llm", "s", 8000, "m", "i"), lambda: 4)
    assert [found.checks[0].verdict for found in (absent, unnamed)] == [Verdict.CANNOT_TELL] * 2


def test_every_ready_address_is_asked_by_itself(kube, http, served, load) -> None:
    kube.add(load("sim-node/node-after-plugin.json"))
    kube.add(slices({"addresses": ["10.42.0.9"]}, {"addresses": ["10.42.0.8"], "conditions": {"ready": True}}))
    paths = {"health": "/health", "models": "/v1/models", "chat completion": "/v1/chat/completions", "version": "/version"}
    http.answers = {f"http://10.42.0.9:8000{paths[name]}": answer for name, answer in served.items()}
    found = _serving.check_endpoints(kube, http, TARGET, lambda address: address == "10.88.0.5")
    by_place = {(check.name, check.object): check.verdict for check in found.checks}
    assert by_place["endpoints", "Service llm/vllm-qwen"] is Verdict.PASS
    assert by_place["chat completion", "endpoint 10.42.0.9:8000"] is Verdict.PASS
    assert by_place["chat completion", "endpoint 10.42.0.8:8000"] is Verdict.FAIL
    assert found.versions == {"vllm": "0.32.0"}
    assert found.completion


def test_a_service_without_a_ready_address_fails(kube, http) -> None:
    kube.add(slices({"addresses": ["10.42.0.9"], "conditions": {"ready": False}}))
    (check,) = _serving.check_endpoints(kube, http, TARGET, lambda address: address == "10.88.0.5").checks
    assert (check.verdict, check.seen) == (Verdict.FAIL, "0 ready, 1 not ready")
    assert http.asked == []


def test_away_from_the_node_endpoints_cannot_be_told(kube, http, load) -> None:
    kube.add(load("sim-node/node-after-plugin.json"))
    kube.add(slices({"addresses": ["10.42.0.9"]}))
    checks = _serving.check_endpoints(kube, http, TARGET, lambda address: False).checks
    assert verdicts(checks) == {"endpoints": "pass", "endpoint": "cannot_tell"}
    assert checks[1].seen.startswith("this machine is no node of the cluster")
    assert http.asked == []


def test_own_addresses_are_those_that_can_be_bound() -> None:
    assert _serving.is_own_address("127.0.0.1")
    assert not _serving.is_own_address("192.0.2.1")


def test_addresses_of_ipv6_are_bracketed() -> None:
    assert _serving.addresses([slices({"addresses": ["fd00::9"]})]) == (["[fd00::9]:8000"], 0)


def printed(served: dict[str, Answer]) -> dict[str, Any]:
    answers = {name: vars(answer) for name, answer in served.items()}
    return {"address": "10.43.146.83", "error": "", "answers": answers}


def test_the_service_is_asked_by_its_name_from_a_pod_that_is_deleted(kube, clock, served) -> None:
    def finish(pod: dict[str, Any]) -> None:
        pod["status"] = {"phase": "Succeeded"}
        kube.logs[pod["metadata"]["name"], "probe", False] = f"a warning\n{json.dumps(printed(served))}\n"

    kube.on_create = finish
    found = _serving.check_dns(kube, clock, TARGET)
    assert verdicts(found.checks) == dict.fromkeys(("cluster DNS", "health", "models", "chat completion"), "pass")
    assert {check.object for check in found.checks} == {"vllm-qwen.llm.svc.cluster.local:8000"}
    assert kube.list("v1", "Pod", "llm") == []


def test_a_name_that_does_not_resolve_fails(served) -> None:
    found = _serving.judge_printed({"address": "", "error": "Name or service not known", "answers": {}}, "x:8000", TARGET)
    (check,) = found.checks
    assert (check.verdict, check.seen) == (Verdict.FAIL, "Name or service not known")


def test_a_probe_pod_that_does_not_end_cannot_be_told_and_is_deleted(kube, clock) -> None:
    kube.on_create = lambda pod: pod.update(status={"phase": "Pending"})
    (check,) = _serving.check_dns(kube, clock, TARGET).checks
    assert check.verdict is Verdict.CANNOT_TELL
    assert check.seen == "it did not end within 120 s (phase Pending)"
    assert kube.list("v1", "Pod", "llm") == []
