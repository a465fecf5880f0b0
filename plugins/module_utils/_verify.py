"""Running the groups of checks and making one result document of them; used by the module and by scripts/verify.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ._checks import document
from ._clock import Clock
from ._errors import LibraryError
from ._http import Http
from ._kube import Kube
from ._serving import Findings, Promised, Target, check_dns, check_endpoints, check_node, is_own_address, not_checked


def verify(
    target: Target,
    groups: Sequence[str],
    *,
    connect: Callable[[], Kube],
    http: Callable[[], Http],
    clock: Clock,
    promised: Promised,
    labels: Mapping[str, str],
    is_local: Callable[[str], bool] = is_own_address,
    pods_allowed: bool = True,
) -> dict[str, Any]:
    """Check ``groups`` of ``target``. A group that cannot be looked at is open, never passed.

    :param connect: makes the seam to the API server
    :param http: makes the seam to HTTP servers
    :param promised: tells how many GPUs the node must offer
    :param labels: taken over into the document
    :param is_local: tells whether an address is one of this machine: Pod addresses are reached from a node only
    :param pods_allowed: False in check mode: nothing may be created
    """
    try:
        kube = connect()
    except LibraryError as error:
        open_checks = [not_checked(group, target, error.seen, error.remedy) for group in groups]
        return _document([Findings(open_checks, {})], target, labels, {})
    looks: dict[str, Callable[[], Findings]] = {
        "node": lambda: check_node(kube, target, promised),
        "endpoints": lambda: check_endpoints(kube, http(), target, is_local),
        "dns": lambda: check_dns(kube, clock, target),
    }
    if not pods_allowed:
        why = not_checked("dns", target, "check mode creates no Pod", "Run without check mode.")
        looks["dns"] = lambda: Findings([why], {})
    findings = [_looked(group, looks[group], target) for group in groups]
    return _document(findings, target, labels, {"kubernetes": kube.version()})


def _looked(group: str, look: Callable[[], Findings], target: Target) -> Findings:
    try:
        return look()
    except LibraryError as error:
        return Findings([not_checked(group, target, str(error), error.remedy)], {})


def _document(
    findings: Sequence[Findings], target: Target, labels: Mapping[str, str], versions: Mapping[str, str]
) -> dict[str, Any]:
    seen = dict(versions)
    for item in findings:
        seen.update(item.versions)
    return document(
        [check for item in findings for check in item.checks],
        subject=target.subject(),
        versions=seen,
        labels=labels,
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
        completion=next((item.completion for item in findings if item.completion), ""),
    )
