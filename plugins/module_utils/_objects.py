"""Kubernetes objects as plain dictionaries: naming, ordering, comparing, hiding. Pure."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ._errors import InvalidInputError

KubeObject = dict[str, Any]

CLUSTER_SCOPED = frozenset(
    {
        "APIService",
        "ClusterRole",
        "ClusterRoleBinding",
        "CustomResourceDefinition",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "RuntimeClass",
        "StorageClass",
    }
)
"""Kinds without a namespace, for the time when no API server can be asked yet."""

FIRST_KINDS = ("Namespace", "CustomResourceDefinition")
"""Kinds that others in the same set need to exist."""

SYSTEM_NAMESPACES = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})

SERVER_FIELDS = ("creationTimestamp", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "uid")

HIDDEN = "(hidden)"

OWNS_NOTHING = "[]"
"""What :func:`owned_fields` answers for an object in which a manager owns nothing."""


@dataclass(frozen=True, order=True)
class Ref:
    """Identity of one object.

    :param namespace: ``None`` for an object without a namespace
    """

    api_version: str
    kind: str
    name: str
    namespace: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    def as_dict(self) -> dict[str, str]:
        """Identity as plain data; ``namespace`` is left out where there is none."""
        data = {"api_version": self.api_version, "kind": self.kind, "name": self.name}
        return {**data, "namespace": self.namespace} if self.namespace else data

    @classmethod
    def from_dict(cls, data: Mapping[str, str]) -> Ref:
        """The inverse of :meth:`as_dict`."""
        return cls(data["api_version"], data["kind"], data["name"], data.get("namespace"))

    @classmethod
    def of(cls, obj: Mapping[str, Any]) -> Ref:
        """Identity of a complete object."""
        meta = obj["metadata"]
        return cls(obj["apiVersion"], obj["kind"], meta["name"], meta.get("namespace"))


def complete(manifests: Iterable[Any], namespace: str, namespaced: Callable[[str, str], bool]) -> list[KubeObject]:
    """Manifests with their namespace filled in, ordered so that namespaces and definitions come first.

    :param namespaced: tells from (apiVersion, kind) whether the kind lives in a namespace
    :raises InvalidInputError: for an entry that is no Kubernetes object, or an object given twice
    """
    done: list[KubeObject] = []
    seen: set[Ref] = set()
    for position, manifest in enumerate(manifests):
        _require_identity(manifest, position)
        obj = json.loads(json.dumps(manifest))
        if namespaced(obj["apiVersion"], obj["kind"]):
            obj["metadata"].setdefault("namespace", namespace)
        ref = Ref.of(obj)
        if ref in seen:
            raise InvalidInputError(f"Reading manifest {position}", f"{ref} was given twice", "Keep one of the two.")
        seen.add(ref)
        done.append(obj)
    return sorted(done, key=lambda obj: FIRST_KINDS.index(obj["kind"]) if obj["kind"] in FIRST_KINDS else len(FIRST_KINDS))


def _require_identity(manifest: Any, position: int) -> None:
    missing = [key for key in ("apiVersion", "kind", "metadata") if not isinstance(manifest, dict) or not manifest.get(key)]
    if not missing and not manifest["metadata"].get("name"):
        missing = ["metadata.name"]
    if missing:
        raise InvalidInputError(
            f"Reading manifest {position}",
            f"it has no {', '.join(missing)}",
            "Give each manifest as a dictionary with apiVersion, kind and metadata.name.",
        )


def namespaced_by_table(_api_version: str, kind: str) -> bool:
    """Whether a kind lives in a namespace, judged without an API server."""
    return kind not in CLUSTER_SCOPED


def is_kept(ref: Ref) -> bool:
    """Whether an object outlives every set that writes into it: it belongs to the cluster itself."""
    return ref.kind == "Node" or (ref.kind == "Namespace" and ref.name in SYSTEM_NAMESPACES)


def identity_only(ref: Ref) -> KubeObject:
    """An object that claims no field: applied, it gives back all that the field manager owned."""
    meta = {"name": ref.name, "namespace": ref.namespace} if ref.namespace else {"name": ref.name}
    return {"apiVersion": ref.api_version, "kind": ref.kind, "metadata": meta}


def comparable(obj: KubeObject | None) -> KubeObject:
    """The part of an object that people declare: without status and what the API server keeps for itself."""
    if obj is None:
        return {}
    meta = {key: value for key, value in obj.get("metadata", {}).items() if key not in SERVER_FIELDS}
    return {**{key: value for key, value in obj.items() if key != "status"}, "metadata": meta}


def owned_fields(obj: KubeObject, manager: str) -> str:
    """What ``manager`` owns by server-side apply in ``obj``, as comparable text."""
    return json.dumps(
        [
            entry.get("fieldsV1", {})
            for entry in obj["metadata"].get("managedFields", [])
            if entry.get("manager") == manager and entry.get("operation") == "Apply"
        ],
        sort_keys=True,
    )


def hidden(obj: KubeObject, other: KubeObject) -> KubeObject:
    """``obj`` fit to be shown: a Secret's values are replaced, and marked where they differ from ``other``'s."""
    if obj.get("kind") != "Secret":
        return obj
    shown = dict(obj)
    for block in ("data", "stringData"):
        if isinstance(obj.get(block), dict):
            theirs = other.get(block) or {}
            shown[block] = {
                key: HIDDEN if not other or theirs.get(key) == value else f"{HIDDEN}, differs"
                for key, value in obj[block].items()
            }
    return shown


def as_text(obj: KubeObject) -> str:
    """An object as stable text for a diff; nothing for an absent one."""
    return json.dumps(obj, indent=2, sort_keys=True) + "\n" if obj else ""


def secret_values(manifests: Iterable[Any]) -> set[str]:
    """Values of all Secrets, so that the caller can keep them out of its output."""
    return {
        str(value)
        for manifest in manifests
        if isinstance(manifest, dict) and manifest.get("kind") == "Secret"
        for block in ("data", "stringData")
        for value in (manifest.get(block) or {}).values()
        if value
    }
