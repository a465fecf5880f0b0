"""The seam to HTTP servers, over httpx."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ._errors import LibraryError

try:
    import httpx

    MISSING = ""
except ImportError as error:
    MISSING = str(error)


@dataclass(frozen=True)
class Answer:
    """An HTTP answer, or what came instead of one.

    :param status: HTTP status code, 0 when nothing answered
    :param body: text of the answer, or of the error
    :param seconds: time until the whole answer was there
    :param refused: the address itself said no; when nothing answered at all this is False
    """

    status: int
    body: str
    seconds: float = 0.0
    refused: bool = False

    def data(self) -> Any:
        """The body read as JSON; an empty dictionary when it is none."""
        try:
            return json.loads(self.body)
        except ValueError:
            return {}


class Http(Protocol):
    """One request, one answer; a connection that fails is an answer with status 0."""

    def request(self, method: str, url: str, *, body: Mapping[str, Any] | None, timeout: float) -> Answer: ...


class HttpxClient:
    """Requests straight to the address: a Pod's address must never be asked of a proxy.

    :raises LibraryError: when httpx is not installed
    """

    def __init__(self) -> None:
        if MISSING:
            raise LibraryError(
                "Preparing HTTP requests",
                f"this Python has no httpx ({MISSING})",
                "Run the role node_baseline first, or set ansible_python_interpreter to its interpreter on the node.",
            )

    def request(self, method: str, url: str, *, body: Mapping[str, Any] | None, timeout: float) -> Answer:
        """Send one request.

        :param body: sent as JSON
        :param timeout: limit of each phase of the request, in seconds
        """
        start = time.monotonic()
        try:
            with httpx.Client(trust_env=False, timeout=timeout) as client:
                answer = client.request(method, url, json=body)
        except httpx.ConnectError as error:
            return Answer(0, str(error), time.monotonic() - start, refused="refused" in str(error).lower())
        except httpx.HTTPError as error:
            return Answer(0, f"{type(error).__name__}: {error}", time.monotonic() - start)
        return Answer(answer.status_code, answer.text, time.monotonic() - start)
