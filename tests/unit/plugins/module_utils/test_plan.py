"""Planning and applying a set."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpunode.serving.plugins.module_utils import _plan
from ansible_collections.gpunode.serving.plugins.module_utils._errors import InvalidInputError
from ansible_collections.gpunode.serving.plugins.module_utils._inventory import inventory_ref, recorded
from ansible_collections.gpunode.serving.plugins.module_utils._objects import Ref, complete, namespaced_by_table
from ansible_collections.gpunode.serving.plugins.module_utils._plan import Action, ManifestSet

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "llm"}}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
OTHER = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}, "data": {"y": "1"}}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gpu-1", "labels": {"nvidia.com/gpu.present": "true"}}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "t"}, "stringData": {"token": "hf_private"}}


def wanted(*manifests: Any, prune: bool = True, force: bool = False) -> ManifestSet:
    objects = complete(manifests, "llm", namespaced_by_table)
    return ManifestSet("web", "llm", objects, "gpunode", force=force, prune=prune)


def actions(steps: list[_plan.Step]) -> list[str]:
    return [f"{step.action.value} {step.ref}" for step in steps]


def apply(kube: Any, target: ManifestSet) -> list[_plan.Step]:
    steps = _plan.plan_present(kube, target)
    _plan.apply_set(kube, steps, target)
    return steps


def test_a_namespace_of_the_set_need_not_exist_to_plan_what_lives_in_it(kube) -> None:
    steps = _plan.plan_present(kube, wanted(CONFIG, NAMESPACE))
    assert actions(steps) == ["create Namespace llm", "create ConfigMap llm/a"]
    assert kube.writes == []


def test_a_namespace_that_nobody_makes_is_an_error(kube) -> None:
    with pytest.raises(InvalidInputError, match=r'namespaces "llm" not found. Add Namespace llm to the set, or create it first'):
        _plan.plan_present(kube, wanted(CONFIG))


def test_in_check_mode_a_missing_namespace_is_taken_as_made_by_others(kube) -> None:
    steps = _plan.plan_present(kube, wanted(CONFIG), predict_absent_namespaces=True)
    assert actions(steps) == ["create ConfigMap llm/a"]


def test_the_second_run_changes_nothing(kube) -> None:
    target = wanted(NAMESPACE, CONFIG)
    assert actions(apply(kube, target)) == ["create Namespace llm", "create ConfigMap llm/a"]
    kube.writes.clear()
    assert actions(apply(kube, target)) == ["unchanged Namespace llm", "unchanged ConfigMap llm/a"]
    assert kube.writes == []


def test_the_record_is_written_before_the_objects_and_holds_them_in_order(kube) -> None:
    apply(kube, wanted(NAMESPACE, CONFIG))
    assert kube.writes[:3] == ["apply Namespace llm", "apply ConfigMap llm/web-inventory", "apply ConfigMap llm/a"]
    assert recorded(kube, "web", "llm") == [Ref("v1", "Namespace", "llm"), Ref("v1", "ConfigMap", "a", "llm")]


def test_what_is_no_longer_rendered_is_deleted_and_forgotten(kube) -> None:
    apply(kube, wanted(NAMESPACE, CONFIG, OTHER))
    assert actions(apply(kube, wanted(NAMESPACE, OTHER)))[-1] == "delete ConfigMap llm/a"
    assert Ref("v1", "ConfigMap", "a", "llm") not in kube.objects
    assert Ref("v1", "ConfigMap", "a", "llm") not in recorded(kube, "web", "llm")


def test_without_pruning_it_stays_and_stays_recorded(kube) -> None:
    apply(kube, wanted(NAMESPACE, CONFIG, OTHER))
    apply(kube, wanted(NAMESPACE, OTHER, prune=False))
    assert Ref("v1", "ConfigMap", "a", "llm") in kube.objects
    assert Ref("v1", "ConfigMap", "a", "llm") in recorded(kube, "web", "llm")


def test_a_changed_value_and_a_removed_field_are_updates(kube) -> None:
    apply(kube, wanted(NAMESPACE, {**CONFIG, "data": {"x": "1", "z": "1"}}))
    steps = _plan.plan_present(kube, wanted(NAMESPACE, CONFIG))
    assert actions(steps)[1] == "update ConfigMap llm/a"
    assert steps[1].after["data"] == {"x": "1"}


def test_taking_over_an_equal_object_of_somebody_else_is_an_update_once(kube) -> None:
    kube.add(NAMESPACE)
    kube.add({**CONFIG, "metadata": {"name": "a", "namespace": "llm"}})
    assert actions(apply(kube, wanted(CONFIG))) == ["update ConfigMap llm/a"]
    assert actions(apply(kube, wanted(CONFIG))) == ["unchanged ConfigMap llm/a"]


def test_removing_a_set_deletes_in_reverse_order_and_forgets_it(kube) -> None:
    apply(kube, wanted(NAMESPACE, CONFIG))
    kube.writes.clear()
    steps = _plan.plan_absent(kube, wanted())
    _plan.remove_set(kube, steps, wanted())
    assert kube.writes == ["delete ConfigMap llm/a", "delete Namespace llm", "delete ConfigMap llm/web-inventory"]
    assert _plan.plan_absent(kube, wanted()) == []


def test_a_node_is_given_back_not_deleted_and_only_once(kube) -> None:
    kube.add({**NODE, "metadata": {"name": "gpu-1", "labels": {"kubernetes.io/hostname": "gpu-1"}}})
    apply(kube, wanted(NAMESPACE, NODE))
    steps = _plan.plan_absent(kube, wanted())
    assert actions(steps) == ["release Node gpu-1", "delete Namespace llm"]
    _plan.remove_set(kube, steps, wanted())
    assert kube.objects[Ref("v1", "Node", "gpu-1")]["metadata"]["labels"] == {"kubernetes.io/hostname": "gpu-1"}
    assert _plan.plan_absent(kube, wanted(NODE)) == []


def test_a_node_that_does_not_exist_is_not_made(kube) -> None:
    with pytest.raises(InvalidInputError, match=r"Planning Node gpu-1: it does not exist, and it is not made by a manifest"):
        _plan.plan_present(kube, wanted(NAMESPACE, NODE))


def test_a_released_volume_is_bound_again(kube) -> None:
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "cache"}, "spec": {"claimRef": {"name": "c"}}}
    kube.add(NAMESPACE)
    apply(kube, wanted(volume))
    live = kube.objects[Ref("v1", "PersistentVolume", "cache")]
    live["spec"]["claimRef"]["uid"] = "old"
    live["status"] = {"phase": "Released"}
    assert actions(apply(kube, wanted(volume))) == ["rebind PersistentVolume cache"]
    assert kube.objects[Ref("v1", "PersistentVolume", "cache")]["spec"]["claimRef"] == {"name": "c"}
    assert actions(apply(kube, wanted(volume))) == ["unchanged PersistentVolume cache"]


def test_a_kind_is_predicted_when_its_definition_is_in_the_set_and_else_refused(kube) -> None:
    kube.unknown_kinds = {"Monitor"}
    kube.add(NAMESPACE)
    monitor = {"apiVersion": "mon.example.com/v1", "kind": "Monitor", "metadata": {"name": "m"}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "monitors.mon.example.com"},
    }
    assert actions(_plan.plan_present(kube, wanted(monitor, definition)))[1] == "create Monitor llm/m"
    with pytest.raises(InvalidInputError, match=r"does not know the kind Monitor in mon.example.com/v1"):
        _plan.plan_present(kube, wanted(monitor))


def test_the_difference_shows_changes_only_and_no_secret(kube) -> None:
    apply(kube, wanted(NAMESPACE, CONFIG))
    entries = _plan.difference(_plan.plan_present(kube, wanted(NAMESPACE, {**CONFIG, "data": {"x": "2"}}, SECRET)))
    assert [entry["after_header"] for entry in entries] == ["ConfigMap llm/a (update)", "Secret llm/t (create)"]
    assert '"x": "1"' in entries[0]["before"]
    assert '"x": "2"' in entries[0]["after"]
    assert "hf_private" not in str(entries)


def test_without_a_cluster_everything_is_predicted() -> None:
    steps = _plan.predict(wanted(NAMESPACE, CONFIG, NODE))
    assert [step.action for step in steps] == [Action.CREATE, Action.CREATE, Action.UPDATE]


def test_a_record_that_was_edited_is_named(kube) -> None:
    kube.add(NAMESPACE)
    ref = inventory_ref("web", "llm")
    kube.add(
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": ref.name, "namespace": "llm"}, "data": {"objects": "{"}}
    )
    with pytest.raises(InvalidInputError, match=r"Delete ConfigMap llm/web-inventory and run again"):
        _plan.plan_present(kube, wanted(CONFIG))
