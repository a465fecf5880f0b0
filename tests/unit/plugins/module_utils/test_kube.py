"""The API server seam: words of refusals, and errors before any request."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils import _kube
from ansible_collections.gpunode.serving.plugins.module_utils._errors import ApiUnreachableError

KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
users: [{name: u, user: {}}]
"""


@pytest.mark.parametrize(
    ("status", "message", "remedy"),
    [
        (409, 'Apply failed with 1 conflict: conflict with "kubectl": .spec.replicas', "set force_conflicts to true"),
        (422, "spec.selector: Invalid value: …: field is immutable", "delete the object (state: absent)"),
        (422, "spec.persistentvolumesource is immutable after creation", "delete the object (state: absent)"),
        (403, 'pods "x" is forbidden: violates PodSecurity "baseline:latest": privileged', "change the Pod, not the level"),
        (403, 'namespace "llm" … because it is being terminated', "Wait until the namespace is gone"),
        (403, 'User "reader" cannot patch resource', "whose user may do this"),
        (401, "Unauthorized", "fetch the file again"),
        (400, "strict decoding error: unknown field", "Correct the manifest."),
        (500, "etcdserver: leader changed", "journalctl -u k3s"),
    ],
)
def test_a_refusal_says_what_to_do(status: int, message: str, remedy: str) -> None:
    error = _kube.refusal("Applying Deployment llm/web", status, message)
    assert str(error).startswith(f"Applying Deployment llm/web: {message}. ")
    assert remedy in error.remedy


def test_the_message_of_a_status_document_is_read() -> None:
    assert _kube.status_message(b'{"kind": "Status", "message": "no"}', "x") == "no"
    assert _kube.status_message("plain text", "x") == "plain text"
    assert _kube.status_message(None, "Not Found") == "Not Found"


def test_a_missing_kubeconfig_is_named(tmp_path: Path) -> None:
    with pytest.raises(ApiUnreachableError, match=r"the kubeconfig cannot be used .* Run the role k3s_server first"):
        _kube.ClusterKube(str(tmp_path / "none.yaml"))


def test_a_missing_client_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_kube, "MISSING", "No module named 'kubernetes'")
    with pytest.raises(ApiUnreachableError, match=r"no Kubernetes client .* Run the role node_baseline first"):
        _kube.ClusterKube("/etc/rancher/k3s/k3s.yaml")


def test_a_server_that_does_not_listen_is_named(tmp_path: Path) -> None:
    (tmp_path / "config").write_text(KUBECONFIG, encoding="utf-8")
    with pytest.raises(ApiUnreachableError, match=r"no usable answer .*refused.* See `systemctl status k3s`"):
        _kube.ClusterKube(str(tmp_path / "config"))


def test_a_failed_handshake_is_no_answer() -> None:
    def answer(reason: str) -> Any:
        return _kube.ClusterKube._refusal("Connecting", SimpleNamespace(status=0, reason=reason, body=None))

    strange = answer("SSLError\n[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: self-signed certificate")
    assert isinstance(strange, ApiUnreachableError)
    assert "Fetch the kubeconfig again" in strange.remedy
    assert "Restart k3s, which renews" in answer("SSLError: certificate verify failed: certificate has expired").remedy
