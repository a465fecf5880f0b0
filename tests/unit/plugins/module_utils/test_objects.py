"""Objects: naming, ordering, comparing, hiding."""

from __future__ import annotations

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils._errors import InvalidInputError
from ansible_collections.gpunode.serving.plugins.module_utils._objects import (
    Ref,
    comparable,
    complete,
    hidden,
    is_kept,
    namespaced_by_table,
    secret_values,
)

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "llm"}}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}}
VOLUME = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "cache"}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t"}, "stringData": {"token": "hf_private"}}


def test_namespaces_come_first_and_the_default_namespace_is_filled_in() -> None:
    done = complete([SERVICE, VOLUME, NAMESPACE], "llm", namespaced_by_table)
    assert [str(Ref.of(obj)) for obj in done] == ["Namespace llm", "Service llm/web", "PersistentVolume cache"]
    assert "namespace" not in SERVICE["metadata"], "the caller's manifest must not be changed"


@pytest.mark.parametrize(
    ("manifest", "words"),
    [
        ({"kind": "Service", "metadata": {"name": "x"}}, "it has no apiVersion"),
        ({"apiVersion": "v1", "kind": "Service", "metadata": {"labels": {}}}, "it has no metadata.name"),
        (None, "it has no apiVersion, kind, metadata"),
    ],
)
def test_what_is_no_object_is_refused_with_its_position(manifest: object, words: str) -> None:
    with pytest.raises(InvalidInputError, match=f"Reading manifest 1: {words}"):
        complete([SERVICE, manifest], "llm", namespaced_by_table)


def test_an_object_given_twice_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"Service llm/web was given twice"):
        complete([SERVICE, SERVICE], "llm", namespaced_by_table)


def test_comparing_leaves_out_what_the_server_keeps(load) -> None:
    left = comparable(load("sim-node/plugin-daemonset.json"))
    assert "status" not in left
    assert {"uid", "generation", "resourceVersion", "creationTimestamp"}.isdisjoint(left["metadata"])
    assert left["spec"]["template"]["spec"]["runtimeClassName"] == "nvidia"


def test_values_of_a_secret_are_hidden_and_marked_where_they_differ() -> None:
    other = {**SECRET, "stringData": {"token": "older"}}
    assert hidden(SECRET, {})["stringData"] == {"token": "(hidden)"}
    assert hidden(SECRET, SECRET)["stringData"] == {"token": "(hidden)"}
    assert hidden(SECRET, other)["stringData"] == {"token": "(hidden), differs"}
    assert secret_values([SECRET, SERVICE, "text"]) == {"hf_private"}


@pytest.mark.parametrize(
    ("ref", "kept"),
    [
        (Ref("v1", "Node", "gpu-1"), True),
        (Ref("v1", "Namespace", "kube-system"), True),
        (Ref("v1", "Namespace", "llm"), False),
        (Ref("v1", "Service", "web", "kube-system"), False),
    ],
)
def test_what_belongs_to_the_cluster_is_never_deleted(ref: Ref, kept: bool) -> None:
    assert is_kept(ref) is kept
