"""Waiting for a set of objects: until all are ready, until one shows that it never will be, or until time is up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from ._clock import Clock
from ._evidence import WORKLOADS, gather
from ._failures import Baseline, Failure, first_failure, last_sign
from ._kube import Kube
from ._objects import Ref
from ._readiness import Readiness, is_stale, readiness

T = TypeVar("T")

FIRST_PAUSE = 0.5
LONGEST_PAUSE = 3.0


@dataclass(frozen=True)
class Waited(Generic[T]):
    """How a wait ended.

    :param last: what was observed last, also when time ran out
    :param elapsed: seconds
    :param attempts: number of observations
    :param done: whether the observation was the wanted one
    """

    last: T
    elapsed: float
    attempts: int
    done: bool


def wait_until(observe: Callable[[], T], is_done: Callable[[T], bool], clock: Clock, timeout: float) -> Waited[T]:
    """Observe until ``is_done``, at growing intervals, at least once and for at most about ``timeout`` seconds."""
    start, pause, attempts = clock.monotonic(), FIRST_PAUSE, 0
    while True:
        attempts += 1
        seen = observe()
        elapsed = clock.monotonic() - start
        done = is_done(seen)
        if done or elapsed + pause > timeout:
            return Waited(seen, elapsed, attempts, done)
        clock.sleep(pause)
        pause = min(pause * 1.3, LONGEST_PAUSE)


@dataclass(frozen=True)
class SetState:
    """One observation of a set of objects.

    :param failure: reason to stop waiting, when one was seen
    """

    states: Mapping[Ref, Readiness]
    failure: Failure | None = None

    @property
    def settled(self) -> bool:
        return self.failure is not None or self.ready

    @property
    def ready(self) -> bool:
        return all(state.ready for state in self.states.values())


def baseline(kube: Kube, refs: Sequence[Ref]) -> Baseline:
    """What the workloads among ``refs`` had already gone through before anything was applied."""
    live = [kube.read(ref) for ref in refs if ref.kind in WORKLOADS]
    return Baseline.of(gather(kube, obj) for obj in live if obj is not None)


def observe(kube: Kube, refs: Sequence[Ref], before: Baseline) -> SetState:
    """State of every object, and the first reason why one of those not ready will not become so."""
    states: dict[Ref, Readiness] = {}
    failure = None
    for ref in refs:
        live = kube.read(ref)
        states[ref] = readiness(live)
        # Until the controller has seen the new generation, the Pods to be found are those of the old one.
        judged = live is not None and ref.kind in WORKLOADS and not states[ref].ready and not is_stale(live)
        if live is not None and judged and failure is None:
            failure = first_failure(gather(kube, live), before)
    return SetState(states, failure)


def wait_for_set(kube: Kube, refs: Sequence[Ref], before: Baseline, clock: Clock, timeout: float) -> Waited[SetState]:
    """Wait until every object is ready or a failure shows."""
    return wait_until(lambda: observe(kube, refs, before), lambda state: state.settled, clock, timeout)


def wait_for_absence(kube: Kube, refs: Sequence[Ref], clock: Clock, timeout: float) -> Waited[list[Ref]]:
    """Wait until none of the objects is left; the last observation lists those that are."""
    return wait_until(lambda: [ref for ref in refs if kube.read(ref) is not None], lambda left: not left, clock, timeout)


def explain_timeout(kube: Kube, state: SetState) -> str:
    """The best available words for why the first object that is not ready is not, old signs included."""
    for ref, seen in state.states.items():
        if seen.ready:
            continue
        live = kube.read(ref) if ref.kind in WORKLOADS else None
        if live is None:
            return ""
        evidence = gather(kube, live)
        failure = first_failure(evidence)
        return f"{failure.ref}: {failure.seen}. {failure.remedy}" if failure else last_sign(evidence)
    return ""
