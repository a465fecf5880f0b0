"""The seam to a Kubernetes API server, over the dynamic client of the ``kubernetes`` package."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, Protocol

from ._errors import ApiUnreachableError, LibraryError, RefusedError
from ._objects import KubeObject, Ref, namespaced_by_table

try:
    from kubernetes import client as _client
    from kubernetes import config as _config
    from kubernetes import dynamic as _dynamic
    from kubernetes.dynamic import exceptions as _exceptions
    from urllib3.exceptions import HTTPError as _HttpError

    MISSING = ""
except ImportError as error:
    MISSING = str(error)

REQUEST_SECONDS = 30.0
"""Time limit of one request: a hanging API server must not hang the play."""


class Kube(Protocol):
    """What the library needs of an API server. Absence is ``None``, never an exception."""

    def namespaced(self, api_version: str, kind: str) -> bool: ...

    def knows(self, api_version: str, kind: str) -> bool: ...

    def read(self, ref: Ref) -> KubeObject | None: ...

    def list(
        self, api_version: str, kind: str, namespace: str | None, labels: str = "", fields: str = ""
    ) -> list[KubeObject]: ...

    def apply(self, obj: KubeObject, *, manager: str, force: bool, dry_run: bool) -> KubeObject: ...

    def merge(self, ref: Ref, patch: KubeObject) -> None: ...

    def create(self, obj: KubeObject) -> KubeObject: ...

    def delete(self, ref: Ref, *, grace_seconds: int | None = None) -> None: ...

    def log(self, namespace: str, pod: str, container: str, *, lines: int, previous: bool) -> str: ...

    def version(self) -> str: ...


class ClusterKube:
    """The API server that a kubeconfig names.

    :param kubeconfig: path of the kubeconfig file on this machine
    :raises ApiUnreachableError: when the client library or the file is missing, or nothing answers
    """

    def __init__(self, kubeconfig: str) -> None:
        self._attempt = f"Connecting to the Kubernetes API of {kubeconfig}"
        self._api = self._configured(kubeconfig)
        try:
            # The library's own cache file has a predictable name in a folder that everybody may write to.
            with tempfile.TemporaryDirectory(prefix="gpunode-discovery-") as folder:
                self._dynamic = _dynamic.DynamicClient(self._api, cache_file=str(Path(folder) / "resources.json"))
        except _exceptions.DynamicApiError as error:
            raise self._refusal(self._attempt, error) from error
        except _HttpError as error:
            raise self._silence(self._attempt, error) from error

    def _configured(self, kubeconfig: str) -> Any:
        if MISSING:
            raise ApiUnreachableError(
                self._attempt,
                f"this Python has no Kubernetes client ({MISSING})",
                "Run the role node_baseline first, or set ansible_python_interpreter to its interpreter on the node.",
            )
        try:
            configuration = _client.Configuration()
            _config.load_kube_config(config_file=kubeconfig, client_configuration=configuration)
        except (_config.ConfigException, OSError) as error:
            raise ApiUnreachableError(
                self._attempt,
                f"the kubeconfig cannot be used ({_first_line(error)})",
                "Run the role k3s_server first, name the right kubeconfig, or run as a user who may read it.",
            ) from error
        configuration.retries = False
        return _timed(_client.ApiClient(configuration))

    def namespaced(self, api_version: str, kind: str) -> bool:
        """Whether the kind lives in a namespace; a kind the server does not know yet is judged by a table."""
        try:
            return bool(self._resource(api_version, kind).namespaced)
        except _exceptions.ResourceNotFoundError:
            return namespaced_by_table(api_version, kind)

    def knows(self, api_version: str, kind: str) -> bool:
        """Whether the API server serves this kind."""
        try:
            self._resource(api_version, kind)
        except _exceptions.ResourceNotFoundError:
            return False
        return True

    def read(self, ref: Ref) -> KubeObject | None:
        """The object as it stands, or ``None``."""
        try:
            return self._call(f"Reading {ref}", "get", ref)
        except (_exceptions.ResourceNotFoundError, _AbsentError):
            return None

    def list(self, api_version: str, kind: str, namespace: str | None, labels: str = "", fields: str = "") -> list[KubeObject]:
        """All objects of a kind that match the selectors, in one namespace or (``None``) in all."""
        place = f"in namespace {namespace}" if namespace else "in the cluster"
        try:
            resource = self._resource(api_version, kind)
            found = self._guarded(
                f"Listing {kind} objects {place}",
                lambda: self._dynamic.get(
                    resource, namespace=namespace, label_selector=labels or None, field_selector=fields or None
                ).to_dict(),
            )
        except (_exceptions.ResourceNotFoundError, _AbsentError):
            return []
        return [{"apiVersion": api_version, "kind": kind, **item} for item in found.get("items") or []]

    def apply(self, obj: KubeObject, *, manager: str, force: bool, dry_run: bool) -> KubeObject:
        """Server-side apply; with ``dry_run`` the server says what it would store and stores nothing.

        :raises RefusedError: with the server's words; status 404 stands for a namespace that does not exist
        """
        return self._call(
            f"Applying {Ref.of(obj)}",
            "server_side_apply",
            Ref.of(obj),
            body=obj,
            field_manager=manager,
            force_conflicts=force,
            **({"dry_run": "All"} if dry_run else {}),
        )

    def merge(self, ref: Ref, patch: KubeObject) -> None:
        """JSON merge patch: ``None`` removes a field."""
        self._call(f"Changing {ref}", "patch", ref, body=patch, content_type="application/merge-patch+json")

    def create(self, obj: KubeObject) -> KubeObject:
        """Create an object that must not exist yet."""
        ref = Ref.of(obj)
        resource = self._resource(ref.api_version, ref.kind)
        made = self._guarded(f"Creating {ref}", lambda: self._dynamic.create(resource, body=obj, namespace=ref.namespace))
        return dict(made.to_dict())

    def delete(self, ref: Ref, *, grace_seconds: int | None = None) -> None:
        """Ask for deletion; an object that is not there is no error."""
        options = {} if grace_seconds is None else {"grace_period_seconds": grace_seconds}
        try:
            self._call(f"Deleting {ref}", "delete", ref, propagation_policy="Background", **options)
        except (_exceptions.ResourceNotFoundError, _AbsentError):
            return

    def log(self, namespace: str, pod: str, container: str, *, lines: int, previous: bool) -> str:
        """Last ``lines`` lines of a container; empty when there is no log (any more)."""
        query = [("container", container), ("tailLines", lines), ("previous", "true" if previous else "false")]
        try:
            answer = self._dynamic.request(
                "get", f"/api/v1/namespaces/{namespace}/pods/{pod}/log", query_params=query, serialize=False
            )
        except (_exceptions.DynamicApiError, _HttpError):
            return ""
        return bytes(answer.data).decode("utf-8", "replace")

    def version(self) -> str:
        """Version that the API server reports, like ``v1.36.2+k3s1``."""
        return str(self._dynamic.version["kubernetes"]["gitVersion"])

    def _resource(self, api_version: str, kind: str) -> Any:
        return self._guarded(f"Looking up {kind} in {api_version}", lambda: self._find(api_version, kind))

    def _find(self, api_version: str, kind: str) -> Any:
        group = {} if "/" in api_version else {"prefix": "api"}
        return self._dynamic.resources.get(api_version=api_version, kind=kind, **group)

    def _call(self, attempted: str, verb: str, ref: Ref, **options: Any) -> KubeObject:
        resource = self._resource(ref.api_version, ref.kind)
        target = getattr(self._dynamic, verb)
        found = self._guarded(attempted, lambda: target(resource, name=ref.name, namespace=ref.namespace, **options))
        return dict(found.to_dict())

    def _guarded(self, attempted: str, call: Any) -> Any:
        try:
            return call()
        except _exceptions.NotFoundError as error:
            raise _AbsentError(attempted, error) from error
        except _exceptions.DynamicApiError as error:
            raise self._refusal(attempted, error) from error
        except _HttpError as error:
            raise self._silence(attempted, error) from error

    @staticmethod
    def _refusal(attempted: str, error: Any) -> LibraryError:
        if not error.status:
            # The client reports a failed TLS handshake as an answer with status 0.
            return ClusterKube._silence(attempted, RuntimeError(" ".join(str(error.reason).split())))
        return refusal(attempted, int(error.status or 0), status_message(error.body, str(error.reason)))

    @staticmethod
    def _silence(attempted: str, error: Exception) -> ApiUnreachableError:
        text = _first_line(error)
        remedy = "See `systemctl status k3s` on the node, and whether the address in the kubeconfig can be reached from here."
        if "certificate has expired" in text:
            remedy = "Restart k3s, which renews its certificates, and check the node's clock."
        elif "certificate verify failed" in text:
            remedy = "Fetch the kubeconfig again: it belongs to another cluster or names an address missing from tls-san."
        return ApiUnreachableError(attempted, f"no usable answer ({text})", remedy)


class _AbsentError(RefusedError):
    """The API server says 404."""

    def __init__(self, attempted: str, error: Any) -> None:
        message = status_message(error.body, "not found")
        super().__init__(attempted, message, "Create what is missing first.", status=404, message=message)


def _timed(api: Any) -> Any:
    """The same API client with a time limit for every request, those of discovery included."""
    call_api = api.call_api

    def limited(*args: Any, **kwargs: Any) -> Any:
        return call_api(*args, **{**kwargs, "_request_timeout": kwargs.get("_request_timeout") or REQUEST_SECONDS})

    api.call_api = limited
    return api


def status_message(body: Any, fallback: str) -> str:
    """The ``message`` of a Kubernetes Status document, or the text itself."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else str(body or "")
    try:
        document = json.loads(text)
    except ValueError:
        return text.strip() or fallback
    return str(document.get("message") or fallback) if isinstance(document, dict) else fallback


def refusal(attempted: str, status: int, message: str) -> RefusedError:
    """The error for an answer of the API server, with a remedy chosen by status and text."""
    return RefusedError(attempted, message, _remedy(status, message), status=status, message=message)


def _remedy(status: int, message: str) -> str:
    if status == 409 and "conflict" in message.lower():
        return "Take the fields out of the manifest, or set force_conflicts to true to take them over from their manager."
    if status == 422 and ("immutable" in message or "may not change once set" in message):
        return "This field cannot be changed in place: delete the object (state: absent) and apply it again, or use another name."
    if status == 401:
        return "The credentials of the kubeconfig are not accepted: fetch the file again from the node."
    if status == 403 and "violates PodSecurity" in message:
        return "The namespace's Pod Security level forbids this Pod: change the Pod, not the level."
    if status == 403 and "being terminated" in message:
        return "Wait until the namespace is gone, then run again."
    if status == 403:
        return "Use a kubeconfig whose user may do this."
    if status in (400, 422):
        return "Correct the manifest."
    return "See the API server's log (`journalctl -u k3s`) and run again."


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
