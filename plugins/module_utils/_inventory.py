"""The record of what a set of manifests has applied: a ConfigMap beside the objects."""

from __future__ import annotations

import json
from collections.abc import Iterable

from ._errors import InvalidInputError
from ._kube import Kube
from ._objects import KubeObject, Ref

MANAGED_BY = {"app.kubernetes.io/managed-by": "gpunode"}


def inventory_ref(name: str, namespace: str) -> Ref:
    """Identity of the ConfigMap that records the set ``name``."""
    return Ref("v1", "ConfigMap", f"{name}-inventory", namespace)


def recorded(kube: Kube, name: str, namespace: str) -> list[Ref]:
    """Objects that earlier runs of the set applied, in the order of application.

    :raises InvalidInputError: when the record was edited beyond recognition
    """
    ref = inventory_ref(name, namespace)
    found = kube.read(ref)
    if found is None:
        return []
    try:
        return [Ref.from_dict(entry) for entry in json.loads(found["data"]["objects"])]
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInputError(
            f"Reading the record of set {name}", f"{ref} cannot be understood ({error!r})", f"Delete {ref} and run again."
        ) from error


def record(kube: Kube, name: str, namespace: str, refs: Iterable[Ref], manager: str) -> None:
    """Write the record, in the order given."""
    kube.apply(_configmap(name, namespace, refs), manager=manager, force=True, dry_run=False)


def _configmap(name: str, namespace: str, refs: Iterable[Ref]) -> KubeObject:
    ref = inventory_ref(name, namespace)
    return {
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "metadata": {"name": ref.name, "namespace": namespace, "labels": dict(MANAGED_BY)},
        "data": {"objects": json.dumps([entry.as_dict() for entry in refs])},
    }
