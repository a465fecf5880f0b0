"""After the role a model answers behind its Service, from a Pod that may do little."""

from __future__ import annotations

import json
from typing import Any

import pytest

KUBECTL = "k3s kubectl --kubeconfig /etc/rancher/k3s/k3s.yaml --namespace llm"
MODEL = "qwen2.5-3b"
CLIENT = """
import sys, urllib.request
request = urllib.request.Request(sys.argv[1], sys.argv[2].encode() or None, {"Content-Type": "application/json"})
print(urllib.request.urlopen(request, timeout=60).read().decode())
"""


@pytest.fixture(scope="module")
def kubectl(host: Any) -> Any:
    """Objects as the API server has them."""
    return lambda command: json.loads(host.check_output(f"{KUBECTL} get {command} --output json"))


@pytest.fixture(scope="module")
def pod(kubectl: Any) -> Any:
    (only,) = kubectl("pods --selector app=vllm")["items"]
    return only


@pytest.fixture(scope="module")
def container(pod: Any) -> Any:
    (only,) = pod["spec"]["containers"]
    return only


@pytest.fixture(scope="module")
def api(host: Any) -> Any:
    """Ask the Service by its name, from inside the cluster: GET, or POST with a body."""
    ask_from_pod = f"{KUBECTL} exec deploy/vllm-qwen -- python3 -c %s http://vllm-qwen:8000%s %s"
    return lambda path, body=None: json.loads(host.check_output(ask_from_pod, CLIENT, path, json.dumps(body) if body else ""))


def test_the_model_is_served_under_its_name(api: Any) -> None:
    assert [entry["id"] for entry in api("/v1/models")["data"]] == [MODEL]


def test_a_chat_completion_is_answered(api: Any) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 8}
    answer = api("/v1/chat/completions", body)
    assert answer["usage"]["completion_tokens"] >= 1


def test_one_replica_is_ready_and_never_restarted(kubectl: Any, pod: Any) -> None:
    status = kubectl("deployment vllm-qwen")["status"]
    assert (status["replicas"], status["readyReplicas"]) == (1, 1)
    assert [entry["restartCount"] for entry in pod["status"]["containerStatuses"]] == [0]


def test_the_pod_takes_one_slice_through_the_nvidia_runtime(pod: Any, container: Any) -> None:
    assert pod["spec"]["runtimeClassName"] == "nvidia"
    assert container["resources"]["limits"]["nvidia.com/gpu.shared"] == "1"
    assert {"app": "vllm", "version": "ver-0"}.items() <= pod["metadata"]["labels"].items()


def test_the_model_is_a_positional_argument(container: Any) -> None:
    line = " ".join(container["args"])
    assert not container["args"][0].startswith("-")
    for part in ("--gpu-memory-utilization 0.40", "--max-model-len 4096", "--max-num-seqs 16", f"--served-model-name {MODEL}"):
        assert part in line


def test_the_engine_may_do_little(pod: Any, container: Any, kubectl: Any) -> None:
    labels = kubectl("namespace llm")["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline"
    assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
    assert pod["spec"]["automountServiceAccountToken"] is False
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_pod_security_refuses_a_host_path(host: Any) -> None:
    spec = {"containers": [{"name": "c", "image": "x:1"}], "volumes": [{"name": "h", "hostPath": {"path": "/"}}]}
    pod = json.dumps({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "h"}, "spec": spec})
    done = host.run(f"printf %s %s | {KUBECTL} create --dry-run=server --filename -", "%s", pod)
    assert done.rc != 0
    assert "violates PodSecurity" in done.stderr


def test_the_model_cache_is_a_volume_of_the_node(host: Any, kubectl: Any, container: Any) -> None:
    volume = kubectl("persistentvolume llm-vllm-qwen-cache")
    assert volume["status"]["phase"] == "Bound"
    assert volume["spec"]["local"] == {"path": "/opt/hf-cache"}
    assert volume["spec"]["persistentVolumeReclaimPolicy"] == "Retain"
    assert {"name": "cache", "mountPath": "/opt/hf-cache"}.items() <= container["volumeMounts"][0].items()
    folder = host.file("/opt/hf-cache")
    assert (folder.user, folder.gid, folder.mode) == ("root", 2000, 0o2775)


def test_shared_memory_is_two_gibibytes(pod: Any) -> None:
    shm = next(volume for volume in pod["spec"]["volumes"] if volume["name"] == "shm")
    assert shm["emptyDir"] == {"medium": "Memory", "sizeLimit": "2Gi"}
