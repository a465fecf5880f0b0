"""Seams replaced for all plugin tests: an API server in memory, a clock that nobody waits for, and the fixtures."""

from __future__ import annotations

import contextlib
import copy
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpunode.serving.plugins.module_utils._errors import ApiUnreachableError
from ansible_collections.gpunode.serving.plugins.module_utils._http import Answer
from ansible_collections.gpunode.serving.plugins.module_utils._kube import refusal
from ansible_collections.gpunode.serving.plugins.module_utils._objects import Ref, namespaced_by_table
from ansible_collections.gpunode.serving.plugins.module_utils._runner import Completed

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"


class FakeClock:
    """A clock on which sleeping is free; ``on_sleep`` may change the world meanwhile."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.on_sleep: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        self.on_sleep()


class FakeKube:
    """An API server in memory: server-side apply with field ownership (by whole manifests), namespaces that must exist."""

    def __init__(self) -> None:
        self.objects: dict[Ref, dict[str, Any]] = {}
        self.owned: dict[tuple[Ref, str], dict[str, Any]] = {}
        self.logs: dict[tuple[str, str, bool], str] = {}
        self.unknown_kinds: set[str] = set()
        self.writes: list[str] = []
        self.refuse: dict[Ref, tuple[int, str]] = {}
        self.on_create: Callable[[dict[str, Any]], None] = lambda obj: None
        self.add({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}, "status": {"phase": "Active"}})

    def add(self, obj: Mapping[str, Any]) -> dict[str, Any]:
        """Put a live object in, as another client would have done."""
        live = copy.deepcopy(dict(obj))
        live["metadata"].setdefault("uid", f"uid-{len(self.objects)}")
        live["metadata"].setdefault("resourceVersion", "1")
        self.objects[Ref.of(live)] = live
        return live

    def namespaced(self, api_version: str, kind: str) -> bool:
        return namespaced_by_table(api_version, kind)

    def knows(self, api_version: str, kind: str) -> bool:
        return kind not in self.unknown_kinds

    def read(self, ref: Ref) -> dict[str, Any] | None:
        return copy.deepcopy(self.objects.get(ref))

    def list(self, api_version: str, kind: str, namespace: str | None, labels: str = "", fields: str = "") -> list[Any]:
        wanted = dict(pair.split("=") for pair in labels.split(",") if pair)
        return [
            copy.deepcopy(obj)
            for ref, obj in self.objects.items()
            if (ref.kind, ref.api_version) == (kind, api_version)
            and (namespace is None or ref.namespace == namespace)
            and wanted.items() <= (obj["metadata"].get("labels") or {}).items()
        ]

    def apply(self, obj: dict[str, Any], *, manager: str, force: bool, dry_run: bool) -> dict[str, Any]:
        ref = Ref.of(obj)
        if ref in self.refuse:
            raise refusal(f"Applying {ref}", *self.refuse[ref])
        if ref.namespace and Ref("v1", "Namespace", ref.namespace) not in self.objects:
            raise refusal(f"Applying {ref}", 404, f'namespaces "{ref.namespace}" not found')
        stored = _merged(_without(self.read(ref) or {}, self.owned.get((ref, manager), {})), obj)
        claims = {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")}
        claims |= {key: value for key, value in obj["metadata"].items() if key not in ("name", "namespace")}
        others = [e for e in stored["metadata"].get("managedFields", []) if e["manager"] != manager]
        mine = [{"manager": manager, "operation": "Apply", "fieldsV1": claims}] if claims else []
        stored["metadata"]["managedFields"] = others + mine
        if not dry_run:
            self.writes.append(f"apply {ref}")
            self.owned[ref, manager] = copy.deepcopy(obj)
            self.add(stored)
        return copy.deepcopy(stored)

    def merge(self, ref: Ref, patch: dict[str, Any]) -> None:
        self.writes.append(f"merge {ref}")
        self.objects[ref] = _merged(self.objects[ref], patch)
        if ref.kind == "PersistentVolume":
            self.objects[ref]["status"]["phase"] = "Available"

    def create(self, obj: dict[str, Any]) -> dict[str, Any]:
        if Ref.of(obj) in self.refuse:
            raise refusal(f"Creating {Ref.of(obj)}", *self.refuse[Ref.of(obj)])
        self.writes.append(f"create {Ref.of(obj)}")
        live = self.add(obj)
        self.on_create(live)
        return live

    def delete(self, ref: Ref, *, grace_seconds: int | None = None) -> None:
        if self.objects.pop(ref, None) is not None:
            self.writes.append(f"delete {ref}")

    def log(self, namespace: str, pod: str, container: str, *, lines: int, previous: bool) -> str:
        return self.logs.get((pod, container, previous), "")

    def version(self) -> str:
        return "v1.36.2+k3s1"


def _merged(base: dict[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(base)
    for key, value in over.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _merged(result.get(key) or {}, value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def _without(base: dict[str, Any], owned: Mapping[str, Any]) -> dict[str, Any]:
    result = copy.deepcopy(base)
    for key, value in owned.items():
        if key in ("apiVersion", "kind", "name", "namespace") or key not in result:
            continue
        if isinstance(value, dict):
            result[key] = _without(result[key], value)
        else:
            del result[key]
    return result


class FakeHttp:
    """HTTP servers in memory: answers by URL, else a refused connection."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer] = {}
        self.asked: list[str] = []

    def request(self, method: str, url: str, *, body: Mapping[str, Any] | None, timeout: float) -> Answer:
        self.asked.append(f"{method} {url}")
        return self.answers.get(url, Answer(0, "[Errno 111] Connection refused", refused=True))


class FakeRunner:
    """Commands in memory: results by the joined command line, else 127."""

    def __init__(self) -> None:
        self.results: dict[str, Completed] = {}
        self.ran: list[str] = []
        self.on_run: Callable[[str], None] = lambda line: None

    def run(self, argv: Sequence[str]) -> Completed:
        line = " ".join(argv)
        self.ran.append(line)
        self.on_run(line)
        return self.results.get(line, Completed(127, "", f"{argv[0]}: command not found"))


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def kube() -> FakeKube:
    return FakeKube()


@pytest.fixture
def http() -> FakeHttp:
    return FakeHttp()


@pytest.fixture
def runner() -> FakeRunner:
    return FakeRunner()


@pytest.fixture
def no_cluster() -> Callable[[str], Any]:
    """A connection that finds no API server."""

    def connect(kubeconfig: str) -> Any:
        raise ApiUnreachableError(f"Connecting to {kubeconfig}", "no usable answer (refused)", "See `systemctl status k3s`.")

    return connect


@pytest.fixture
def text() -> Callable[[str], str]:
    """Content of a fixture file."""
    return lambda name: (FIXTURES / name).read_text(encoding="utf-8")


@pytest.fixture
def load() -> Callable[[str], Any]:
    """A fixture file as data; a list with one item gives the item."""

    def read(name: str) -> Any:
        documents = list(yaml.safe_load_all((FIXTURES / name).read_text(encoding="utf-8")))
        data = documents[0] if len(documents) == 1 else documents
        if isinstance(data, dict) and data.get("kind", "").endswith("List") and len(data["items"]) == 1:
            return data["items"][0]
        return data

    return read


@pytest.fixture
def run_module() -> Callable[..., dict[str, Any]]:
    """Run the body of a module with arguments, and return what it printed."""

    def run(body: Callable[..., None], spec: Mapping[str, Any], arguments: Mapping[str, Any], **seams: Any) -> dict[str, Any]:
        with patch_module_args(dict(arguments)), _printed() as out, contextlib.suppress(SystemExit):
            body(AnsibleModule(argument_spec=dict(spec), supports_check_mode=True), **seams)
        return json.loads(out.getvalue())

    return run


@contextlib.contextmanager
def _printed() -> Iterator[io.StringIO]:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        yield out
