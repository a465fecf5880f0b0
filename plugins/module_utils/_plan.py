"""Deciding what a set of manifests would change, and doing it. The plan changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from . import _inventory
from ._errors import InvalidInputError, RefusedError
from ._kube import Kube
from ._objects import OWNS_NOTHING, KubeObject, Ref, as_text, comparable, hidden, identity_only, is_kept, owned_fields


class Action(StrEnum):
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


def predict(wanted: ManifestSet) -> list[Step]:
    """The plan for a cluster that does not exist yet: everything would be created."""
    refs = [(Ref.of(obj), obj) for obj in wanted.objects]
    return [Step(ref, Action.UPDATE if is_kept(ref) else Action.CREATE, {}, comparable(obj), obj) for ref, obj in refs]


def plan_present(kube: Kube, wanted: ManifestSet, *, predict_absent_namespaces: bool = False) -> list[Step]:
    """What applying the set would do, asked from the API server by dry run.

    :param predict_absent_namespaces: take it that somebody else makes a namespace that is missing: right in check mode, where
        whoever would make it only said so too
    :raises RefusedError: when the server would not accept an object
    :raises InvalidInputError: when the set needs something that neither exists nor is part of it
    """
    refs = [Ref.of(obj) for obj in wanted.objects]
    parents = new_parents(refs)
    if predict_absent_namespaces:
        parents |= {ref.namespace for ref in refs if ref.namespace}
    steps = [_plan_object(kube, obj, wanted, parents) for obj in wanted.objects]
    if not wanted.prune:
        return steps
    kept = set(refs)
    old = [ref for ref in _inventory.recorded(kube, wanted.name, wanted.namespace) if ref not in kept]
    return steps + _plan_removal(kube, old, wanted.manager)


def plan_absent(kube: Kube, wanted: ManifestSet) -> list[Step]:
    """What removing the set would do: its record and its manifests together name the objects."""
    listed = _inventory.recorded(kube, wanted.name, wanted.namespace)
    extra = [ref for ref in (Ref.of(obj) for obj in wanted.objects) if ref not in set(listed)]
    return _plan_removal(kube, listed + extra, wanted.manager)


def new_parents(refs: Iterable[Ref]) -> frozenset[str]:
    """Namespaces that the set itself brings, and a marker for the kinds it defines."""
    return frozenset(ref.name for ref in refs if ref.kind in ("Namespace", "CustomResourceDefinition"))


def _plan_object(kube: Kube, obj: KubeObject, wanted: ManifestSet, parents: frozenset[str]) -> Step:
    ref = Ref.of(obj)
    if not kube.knows(ref.api_version, ref.kind):
        return _plan_unknown_kind(ref, obj, parents)
    live = kube.read(ref)
    if live is None and is_kept(ref):
        raise InvalidInputError(f"Planning {ref}", "it does not exist, and it is not made by a manifest", "Correct its name.")
    if live is None and ref.namespace in parents and kube.read(Ref("v1", "Namespace", str(ref.namespace))) is None:
        return Step(ref, Action.CREATE, {}, comparable(obj), obj)
    try:
        stored = kube.apply(obj, manager=wanted.manager, force=wanted.force, dry_run=True)
    except RefusedError as error:
        if error.status == 404 and ref.namespace:
            raise InvalidInputError(
                f"Planning {ref}", error.message, f"Add Namespace {ref.namespace} to the set, or create it first."
            ) from error
        raise
    return Step(ref, _action(ref, live, stored, wanted.manager), comparable(live), comparable(stored), obj)


def _plan_unknown_kind(ref: Ref, obj: KubeObject, parents: frozenset[str]) -> Step:
    group = ref.api_version.split("/")[0]
    if not any(name.endswith(f".{group}") for name in parents):
        raise InvalidInputError(
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


def _plan_removal(kube: Kube, refs: Iterable[Ref], manager: str) -> list[Step]:
    steps = [_plan_leaving(kube, ref, manager) for ref in reversed(list(refs))]
    return [step for step in steps if step is not None]


def _plan_leaving(kube: Kube, ref: Ref, manager: str) -> Step | None:
    live = kube.read(ref)
    if live is None:
        return None
    if not is_kept(ref):
        return Step(ref, Action.DELETE, comparable(live), {})
    if owned_fields(live, manager) == OWNS_NOTHING:
        return None
    return Step(ref, Action.RELEASE, comparable(live), comparable(_give_back(kube, ref, manager, dry_run=True)))


def _give_back(kube: Kube, ref: Ref, manager: str, *, dry_run: bool) -> KubeObject:
    return kube.apply(identity_only(ref), manager=manager, force=False, dry_run=dry_run)


def apply_set(kube: Kube, steps: Sequence[Step], wanted: ManifestSet) -> None:
    """Do what :func:`plan_present` says.

    What will exist is recorded before it is created, and what goes is forgotten after it is gone: a crash in between
    orphans nothing.
    """
    before = _inventory.recorded(kube, wanted.name, wanted.namespace)
    refs = [step.ref for step in steps if step.wanted is not None]
    old = [ref for ref in before if ref not in set(refs)]
    final = refs if wanted.prune else refs + old

    parents = [step for step in steps if step.ref.kind == "Namespace"]
    for step in parents:
        _apply(kube, step, wanted)
    if before != final:
        _inventory.record(kube, wanted.name, wanted.namespace, refs + old, wanted.manager)
    for step in (step for step in steps if step not in parents):
        _apply(kube, step, wanted)
    _remove(kube, steps, wanted.manager)
    if before != final:
        _inventory.record(kube, wanted.name, wanted.namespace, final, wanted.manager)


def remove_set(kube: Kube, steps: Sequence[Step], wanted: ManifestSet) -> None:
    """Do what :func:`plan_absent` says, and forget the set."""
    _remove(kube, steps, wanted.manager)
    kube.delete(_inventory.inventory_ref(wanted.name, wanted.namespace))


def _apply(kube: Kube, step: Step, wanted: ManifestSet) -> None:
    if step.action is Action.UNCHANGED or step.wanted is None:
        return
    if step.action is Action.REBIND:
        kube.merge(step.ref, {"spec": {"claimRef": {"uid": None, "resourceVersion": None}}})
    kube.apply(step.wanted, manager=wanted.manager, force=wanted.force, dry_run=False)


def _remove(kube: Kube, steps: Iterable[Step], manager: str) -> None:
    for step in steps:
        if step.action is Action.RELEASE:
            _give_back(kube, step.ref, manager, dry_run=False)
        elif step.action is Action.DELETE:
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
