"""The HTTP seam: a connection that fails is an answer, and refused is told from silent."""

from __future__ import annotations

import socket

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils import _http
from ansible_collections.gpunode.serving.plugins.module_utils._errors import LibraryError


def test_a_closed_port_refuses() -> None:
    answer = _http.HttpxClient().request("GET", "http://127.0.0.1:1/health", body=None, timeout=2)
    assert (answer.status, answer.refused) == (0, True)


def test_a_server_that_says_nothing_is_silent() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        answer = _http.HttpxClient().request("GET", f"http://127.0.0.1:{server.getsockname()[1]}/", body=None, timeout=0.2)
    assert (answer.status, answer.refused) == (0, False)
    assert "Timeout" in answer.body


def test_a_body_that_is_no_json_reads_as_nothing() -> None:
    assert _http.Answer(200, "<html>").data() == {}
    assert _http.Answer(200, '{"a": 1}').data() == {"a": 1}


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_http, "MISSING", "No module named 'httpx'")
    with pytest.raises(LibraryError, match=r"this Python has no httpx"):
        _http.HttpxClient()
