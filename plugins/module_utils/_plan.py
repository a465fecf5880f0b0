"""Deciding what a set of manifests would change, and doing it. The plan changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from . import _inventory
from ._errors import InvalidInput, Refused
from ._kube import Kube
from ._objects import KubeObject, Ref, as_text, comparable, hidden, identity_only, is_kept, owned_fields


class Action(str, Enum):
    """What is to be done with one object."""

    CREATE = "create"
    UPDATE = "update"
    REBIND = "rebind"
    UNCHANGED = "unchanged"
    DELETE = "delete"
    RELEASE = "release"


@dataclass(frozen=True)
class ManifestSet:
    """One named set of objects that are applied and pruned together.

    :param name: name of the set, and of its record
    :param namespace: namespace of the record, and of namespaced manifests that name none
    :param objects: the wanted objects, complete and in order
    :param manager: field manager of the server-side apply
    :param force: take over fields that another manager owns
    :param prune: delete what the record lists and the set no longer has
    """

    name: str
    namespace: str
    objects: Sequence[KubeObject]
    manager: str
    force: bool = False
    prune: bool = True


@dataclass(frozen=True)
class Step:
    """One object's part of a plan.

    :param before: comparable part of the live object, empty when it does not exist
    :param after: comparable part that the server would store, empty when it is to go
    :param wanted: manifest to apply, ``None`` for a deletion
    """

    ref: Ref
    action: Action
    before: KubeObject
    after: KubeObject
    wanted: KubeObject | None = None

    @property
    def changes(self) -> bool:
        return self.action is not Action.UNCHANGED

    @property
    def vanishes(self) -> bool:
        return self.action is Action.DELETE


def predict(wanted: ManifestSet) -> list[Step]:
    """The plan for a cluster that does not exist yet: everything would be created."""
    return [Step(Ref.of(obj), Action.CREATE, {}, comparable(obj), obj) for obj in wanted.objects]


def plan_present(kube: Kube, wanted: ManifestSet) -> list[Step]:
    """What applying the set would do, asked from the API server by dry run.

    :raises Refused: when the server would not accept an object
    """
    refs = [Ref.of(obj) for obj in wanted.objects]
    steps = [_plan_object(kube, obj, wanted, new_parents(refs)) for obj in wanted.objects]
    if not wanted.prune:
        return steps
    kept = set(refs)
    return steps + _plan_removal(kube, [ref for ref in _inventory.recorded(kube, wanted.name, wanted.namespace) if ref not in kept])


def plan_absent(kube: Kube, wanted: ManifestSet) -> list[Step]:
    """What removing the set would do: its record and its manifests together name the objects."""
    listed = _inventory.recorded(kube, wanted.name, wanted.namespace)
    extra = [ref for ref in (Ref.of(obj) for obj in wanted.objects) if ref not in set(listed)]
    return _plan_removal(kube, listed + extra)


def new_parents(refs: Iterable[Ref]) -> frozenset[str]:
    """Namespaces that the set itself brings, and a marker for the kinds it defines."""
    return frozenset(ref.name for ref in refs if ref.kind in ("Namespace", "CustomResourceDefinition"))


def _plan_object(kube: Kube, obj: KubeObject, wanted: ManifestSet, parents: frozenset[str]) -> Step:
    ref = Ref.of(obj)
    if not kube.knows(ref.api_version, ref.kind):
        return _plan_unknown_kind(ref, obj, parents)
    live = kube.read(ref)
    if live is None and ref.namespace in parents and kube.read(Ref("v1", "Namespace", str(ref.namespace))) is None:
        return Step(ref, Action.CREATE, {}, comparable(obj), obj)
    try:
        stored = kube.apply(obj, manager=wanted.manager, force=wanted.force, dry_run=True)
    except Refused as error:
        if error.status == 404 and ref.namespace:
            raise InvalidInput(
                f"Planning {ref}", error.message, f"Add Namespace {ref.namespace} to the set, or create it first."
            ) from error
        raise
    return Step(ref, _action(ref, live, stored, wanted.manager), comparable(live), comparable(stored), obj)


def _plan_unknown_kind(ref: Ref, obj: KubeObject, parents: frozenset[str]) -> Step:
    group = ref.api_version.split("/")[0]
    if not any(name.endswith(f".{group}") for name in parents):
        raise InvalidInput(
            f"Planning {ref}",
            f"the API server does not know the kind {ref.kind} in {ref.api_version}",
            "Correct apiVersion and kind, or put the CustomResourceDefinition into the set.",
        )
    return Step(ref, Action.CREATE, {}, comparable(obj), obj)


def _action(ref: Ref, live: KubeObject | None, stored: KubeObject, manager: str) -> Action:
    if live is None:
        return Action.CREATE
    if is_released_volume(live):
        return Action.REBIND
    same = comparable(live) == comparable(stored) and owned_fields(live, manager) == owned_fields(stored, manager)
    return Action.UNCHANGED if same else Action.UPDATE


def is_released_volume(obj: KubeObject) -> bool:
    """Whether a PersistentVolume still names a claim that is gone; it never binds again by itself."""
    return obj.get("kind") == "PersistentVolume" and obj.get("status", {}).get("phase") == "Released"


def _plan_removal(kube: Kube, refs: Iterable[Ref]) -> list[Step]:
    steps = []
    for ref in reversed(list(refs)):
        live = kube.read(ref)
        if live is None:
            continue
        action = Action.RELEASE if is_kept(ref) else Action.DELETE
        steps.append(Step(ref, action, comparable(live), {} if action is Action.DELETE else comparable(live)))
    return steps


def carry_out(kube: Kube, steps: Sequence[Step], wanted: ManifestSet, *, absent: bool) -> None:
    """Do what the plan says. What will exist is recorded before it is created, so that a crash orphans nothing."""
    leaving = {step.ref for step in steps if step.wanted is None}
    staying = [step for step in steps if step.wanted is not None]
    before = [] if absent else _inventory.recorded(kube, wanted.name, wanted.namespace)
    final = [step.ref for step in staying] + [ref for ref in before if not wanted.prune and ref not in {s.ref for s in staying}]
    if not absent:
        parents = [step for step in staying if step.ref.kind == "Namespace"]
        for step in parents:
            _apply(kube, step, wanted)
        _record_if_new(kube, wanted, before, final + [ref for ref in before if ref not in set(final)])
        for step in (step for step in staying if step not in parents):
            _apply(kube, step, wanted)
    for step in (step for step in steps if step.ref in leaving):
        _remove(kube, step, wanted)
    if absent:
        kube.delete(_inventory.inventory_ref(wanted.name, wanted.namespace))
    elif leaving:
        _inventory.record(kube, wanted.name, wanted.namespace, final, wanted.manager)


def _record_if_new(kube: Kube, wanted: ManifestSet, before: list[Ref], refs: list[Ref]) -> None:
    if refs != before:
        _inventory.record(kube, wanted.name, wanted.namespace, refs, wanted.manager)


def _apply(kube: Kube, step: Step, wanted: ManifestSet) -> None:
    if step.action is Action.UNCHANGED or step.wanted is None:
        return
    if step.action is Action.REBIND:
        kube.merge(step.ref, {"spec": {"claimRef": {"uid": None, "resourceVersion": None}}})
    kube.apply(step.wanted, manager=wanted.manager, force=wanted.force, dry_run=False)


def _remove(kube: Kube, step: Step, wanted: ManifestSet) -> None:
    if step.action is Action.RELEASE:
        kube.apply(identity_only(step.ref), manager=wanted.manager, force=False, dry_run=False)
    else:
        kube.delete(step.ref)


def difference(steps: Iterable[Step]) -> list[dict[str, str]]:
    """The plan as Ansible shows differences: one entry for each object that changes, Secrets hidden."""
    return [
        {
            "before_header": f"{step.ref} (live)",
            "after_header": f"{step.ref} ({step.action.value})",
            "before": as_text(hidden(step.before, step.after)),
            "after": as_text(hidden(step.after, step.before)),
        }
        for step in steps
        if step.changes
    ]
