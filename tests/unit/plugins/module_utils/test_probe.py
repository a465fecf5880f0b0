"""The probe Pod: what it may do, its program, and that nothing of it stays."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils import _probe, _probe_client
from ansible_collections.gpunode.serving.plugins.module_utils._errors import LibraryError, RefusedError
from ansible_collections.gpunode.serving.plugins.module_utils._objects import Ref
from ansible_collections.gpunode.serving.plugins.module_utils._serving import requests

ARGUMENTS = {"namespace": "llm", "image": "docker.io/x/vllm:1", "base": "http://s", "requests": [], "timeout": 20}


class Engine(BaseHTTPRequestHandler):
    """A server that answers /health, echoes a POST, and knows nothing else."""

    def do_GET(self) -> None:
        self.answer(200 if self.path == "/health" else 404, b"")

    def do_POST(self) -> None:
        self.answer(200, self.rfile.read(int(self.headers["Content-Length"])))

    def answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        return


@pytest.fixture
def engine() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_program_reports_status_body_and_time_of_each_request(engine: str) -> None:
    got = _probe_client.ask(engine, requests("tiny"), 5)
    answers: Any = got["answers"]
    assert got["address"] == "127.0.0.1"
    assert [answers[name]["status"] for name in ("health", "models", "chat completion", "version")] == [200, 404, 200, 404]
    assert json.loads(answers["chat completion"]["body"])["model"] == "tiny"
    assert answers["health"]["seconds"] < 5


def test_the_program_tells_refused_from_unknown(engine: str) -> None:
    refused: Any = _probe_client.ask("http://127.0.0.1:1", requests("tiny")[:1], 5)
    assert (refused["answers"]["health"]["status"], refused["answers"]["health"]["refused"]) == (0, True)
    unknown = _probe_client.ask("http://no-such-name.invalid:8000", requests("tiny"), 5)
    assert unknown["address"] == ""
    assert unknown["error"]
    assert unknown["answers"] == {}


def test_the_pod_has_no_gpu_no_rights_and_an_end_of_its_own() -> None:
    spec = _probe.pod("llm", "p", "img:1", ("http://s", "[]", "5"), 60)["spec"]
    (box,) = spec["containers"]
    assert "runtimeClassName" not in spec
    assert "nvidia.com/gpu.shared" not in str(spec)
    assert spec["automountServiceAccountToken"] is False
    assert spec["activeDeadlineSeconds"] == 60
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert box["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    compile(box["command"][3], "probe", "exec")


def test_leftovers_of_a_killed_run_go_first(kube, clock) -> None:
    kube.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "old", "namespace": "llm", "labels": _probe.LABELS}})
    with pytest.raises(LibraryError):
        _probe.ask(kube, clock, **ARGUMENTS)
    assert kube.writes[0] == "delete Pod llm/old"


def test_output_that_is_no_result_is_an_error_and_the_pod_is_deleted(kube, clock) -> None:
    def fail(pod: dict[str, Any]) -> None:
        pod["status"] = {"phase": "Failed"}
        kube.logs[pod["metadata"]["name"], "probe", False] = 'exec: "python3": not found'

    kube.on_create = fail
    with pytest.raises(LibraryError, match=r"it printed no result .*not found.* Use an image that has python3 on its PATH"):
        _probe.ask(kube, clock, **ARGUMENTS)
    assert kube.list("v1", "Pod", "llm") == []


def test_a_pod_that_the_api_server_refuses_is_an_error_with_its_words(kube, clock, monkeypatch) -> None:
    monkeypatch.setattr(_probe.secrets, "token_hex", lambda length: "abc")
    kube.refuse[Ref("v1", "Pod", "serving-check-abc", "llm")] = (403, 'violates PodSecurity "restricted"')
    with pytest.raises(RefusedError, match=r"change the Pod, not the level"):
        _probe.ask(kube, clock, **ARGUMENTS)


def test_a_play_that_is_interrupted_leaves_no_pod(kube, clock) -> None:
    before = signal.getsignal(signal.SIGTERM)
    kube.on_create = lambda pod: pod.update(status={"phase": "Running"})
    clock.on_sleep = lambda: os.kill(os.getpid(), signal.SIGTERM)
    with pytest.raises(SystemExit):
        _probe.ask(kube, clock, **ARGUMENTS)
    assert kube.list("v1", "Pod", "llm") == []
    assert signal.getsignal(signal.SIGTERM) is before
