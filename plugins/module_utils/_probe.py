"""A short-lived Pod that asks a Service from inside the cluster."""

from __future__ import annotations

import inspect
import json
import secrets
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from . import _probe_client
from ._clock import Clock
from ._errors import LibraryError
from ._evidence import gather
from ._failures import first_failure, last_sign
from ._inventory import MANAGED_BY
from ._kube import Kube
from ._objects import KubeObject, Ref
from ._wait import wait_until

LABELS = {**MANAGED_BY, "app.kubernetes.io/name": "serving-check"}
SELECTOR = ",".join(f"{key}={value}" for key, value in LABELS.items())
NOBODY = 65534


def pod(namespace: str, name: str, image: str, arguments: Sequence[str], seconds: int) -> KubeObject:
    """The Pod: no GPU, no rights, no service account, and an end of its own should nobody be left to delete it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": dict(LABELS)},
        "spec": {
            "restartPolicy": "Never",
            "activeDeadlineSeconds": seconds,
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {"runAsNonRoot": True, "runAsUser": NOBODY, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "probe",
                    "image": image,
                    "imagePullPolicy": "IfNotPresent",
                    "command": ["python3", "-I", "-c", inspect.getsource(_probe_client), *arguments],
                    "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"}],
                    "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        },
    }


def ask(
    kube: Kube, clock: Clock, *, namespace: str, image: str, base: str, requests: Sequence[KubeObject], timeout: int
) -> dict[str, Any]:
    """Send ``requests`` from a Pod in ``namespace`` and return what the Pod's program printed.

    The Pod is deleted in every case, also when this process is asked to end; leftovers of a process that was killed go first.

    :param timeout: seconds that the Pod may take, its start included
    :raises LibraryError: when the Pod cannot be made, does not end in time, or prints nothing usable
    """
    for leftover in kube.list("v1", "Pod", namespace, labels=SELECTOR):
        kube.delete(Ref.of(leftover), grace_seconds=0)
    name = f"serving-check-{secrets.token_hex(3)}"
    arguments = (base, json.dumps(list(requests)), str(max(timeout // 4, 5)))
    ref = Ref("v1", "Pod", name, namespace)
    with _deleted_at_the_end(kube, ref):
        kube.create(pod(namespace, name, image, arguments, timeout))
        return _printed(kube, clock, ref, timeout)


@contextmanager
def _deleted_at_the_end(kube: Kube, ref: Ref) -> Iterator[None]:
    """SIGTERM (an interrupted play) becomes an exception, so that the Pod is deleted then too."""
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        kube.delete(ref, grace_seconds=0)
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _printed(kube: Kube, clock: Clock, ref: Ref, timeout: int) -> dict[str, Any]:
    attempted = f"Asking from {ref}"
    waited = wait_until(lambda: kube.read(ref), _has_ended, clock, timeout)
    if not waited.done:
        raise LibraryError(
            attempted, f"it did not end within {timeout} s ({_why(kube, waited.last)})", "See its events, or raise the timeout."
        )
    log = kube.log(str(ref.namespace), ref.name, "probe", lines=200, previous=False)
    try:
        printed = json.loads(log.strip().splitlines()[-1])
    except (IndexError, ValueError) as error:
        last = (log.strip().splitlines() or ["nothing"])[-1]
        raise LibraryError(attempted, f"it printed no result ({last})", "Use an image that has python3 on its PATH.") from error
    return dict(printed)


def _has_ended(live: KubeObject | None) -> bool:
    return live is None or live.get("status", {}).get("phase") in ("Succeeded", "Failed")


def _why(kube: Kube, live: KubeObject | None) -> str:
    if live is None:
        return "it is gone"
    evidence = gather(kube, live)
    failure = first_failure(evidence)
    return failure.seen if failure else last_sign(evidence) or f"phase {live.get('status', {}).get('phase', 'unknown')}"
