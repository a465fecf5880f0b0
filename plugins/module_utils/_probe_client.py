"""The program of the probe Pod: asks a server as any client in the cluster would, and prints what it got as JSON.

Runs under the Python of an image that is there anyway, so it uses the standard library only.
"""

from __future__ import annotations

import json
import socket
import sys
import time
import urllib.error
import urllib.parse
import urllib.request


def ask(base: str, requests: list[dict[str, object]], timeout: float) -> dict[str, object]:
    """Resolve the server's name, then send the requests.

    :param base: URL of the server without a path
    :param requests: each with ``name``, ``method``, ``path`` and ``body`` (``None``, or sent as JSON)
    :returns: ``address`` (empty when the name is unknown), ``error`` of the look-up, and ``answers`` by name
    """
    host = urllib.parse.urlsplit(base).hostname or ""
    try:
        address = str(socket.getaddrinfo(host, None)[0][4][0])
    except OSError as error:
        return {"address": "", "error": str(error), "answers": {}}
    return {"address": address, "error": "", "answers": {str(item["name"]): send(base, item, timeout) for item in requests}}


def send(base: str, item: dict[str, object], timeout: float) -> dict[str, object]:
    """One request: ``status`` (0 when nothing answered), ``body``, ``seconds`` and ``refused``."""
    data = None if item["body"] is None else json.dumps(item["body"]).encode()
    request = urllib.request.Request(
        f"{base}{item['path']}", data, {"Content-Type": "application/json"}, method=str(item["method"])
    )
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    start = time.monotonic()
    refused = False
    try:
        with opener.open(request, timeout=timeout) as answer:
            status, body = answer.status, answer.read().decode("utf-8", "replace")
    except urllib.error.HTTPError as error:
        status, body = error.code, error.read().decode("utf-8", "replace")
    except OSError as error:
        reason = getattr(error, "reason", error)
        status, body, refused = 0, str(reason), isinstance(reason, ConnectionRefusedError)
    return {"status": status, "body": body, "seconds": round(time.monotonic() - start, 4), "refused": refused}


if __name__ == "__main__":
    print(json.dumps(ask(sys.argv[1], json.loads(sys.argv[2]), float(sys.argv[3]))))
