"""Recognising that a workload will not become ready by waiting longer. Pure functions over objects and events."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ._objects import KubeObject, Ref
from ._readiness import condition

REPEATED_REJECTIONS = 3
"""Failed Pods of one revision after which a rejection that may pass is taken as lasting."""


@dataclass(frozen=True)
class Failure:
    """One reason to stop waiting.

    :param ref: the object that shows it
    :param seen: what it shows
    :param remedy: what to do next, as a sentence
    :param container: container whose last log explains more, when there is one
    """

    ref: Ref
    seen: str
    remedy: str
    container: str | None = None


@dataclass(frozen=True)
class Evidence:
    """What belongs to one workload at one moment, of its current revision only.

    :param workload: the Deployment, DaemonSet, … itself
    :param owners: objects between the workload and its Pods (the current ReplicaSet)
    :param pods: Pods of the current revision
    :param events: events about all of these
    """

    workload: KubeObject
    owners: Sequence[KubeObject] = ()
    pods: Sequence[KubeObject] = ()
    events: Sequence[KubeObject] = ()


@dataclass(frozen=True)
class Baseline:
    """What had already happened when waiting began: only news can be a reason to stop.

    :param events: (uid, resourceVersion) of the events
    :param restarts: restart count by (Pod uid, container)
    :param deadlines: (uid, time) of roll-outs that had run out of time: the mark stays until the next progress
    """

    events: frozenset[tuple[str, str]] = frozenset()
    restarts: Mapping[tuple[str, str], int] = field(default_factory=dict)
    deadlines: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, evidence: Iterable[Evidence]) -> Baseline:
        """The baseline that ``evidence`` of before the change makes."""
        everything = list(evidence)
        return cls(
            frozenset(_event_key(event) for item in everything for event in item.events),
            {
                (pod["metadata"]["uid"], status["name"]): status.get("restartCount", 0)
                for item in everything
                for pod in item.pods
                for status in _container_statuses(pod)
            },
            frozenset(_deadline_key(item.workload, entry) for item in everything for entry in _passed_deadlines(item.workload)),
        )

    def is_new(self, event: KubeObject) -> bool:
        """Whether the event came, or came again, after the baseline was taken."""
        return _event_key(event) not in self.events

    def restarted(self, pod: KubeObject, status: KubeObject) -> bool:
        """Whether the container ended at least once since the baseline was taken."""
        return bool(status.get("restartCount", 0) > self.restarts.get((pod["metadata"]["uid"], status["name"]), 0))


NOTHING_BEFORE = Baseline()


def first_failure(evidence: Evidence, baseline: Baseline = NOTHING_BEFORE) -> Failure | None:
    """The most telling reason why the workload will not become ready, or ``None`` when waiting may still help."""
    news = [event for event in evidence.events if baseline.is_new(event)]
    return next(_failures(evidence, news, baseline), None)


def _failures(evidence: Evidence, news: list[KubeObject], baseline: Baseline) -> Iterator[Failure]:
    for pod in evidence.pods:
        if _is_live(pod):
            yield from _container_failures(pod, baseline)
            yield from _event_failures(pod, news)
    for owner in (*evidence.owners, evidence.workload):
        yield from _event_failures(owner, news)
    yield from _rejections(evidence.pods)
    yield from _deadline(evidence.workload, baseline)
    yield from _ended(evidence.workload)


def _is_live(pod: KubeObject) -> bool:
    return pod.get("status", {}).get("phase") != "Failed" and not pod["metadata"].get("deletionTimestamp")


def _container_failures(pod: KubeObject, baseline: Baseline) -> Iterator[Failure]:
    for status in _container_statuses(pod):
        ended = (status.get("lastState") or {}).get("terminated") or (status.get("state") or {}).get("terminated") or {}
        waiting = (status.get("state") or {}).get("waiting") or {}
        reason, name = waiting.get("reason", ""), status["name"]
        if ended.get("reason") == "OOMKilled" and baseline.restarted(pod, status):
            limit = (status.get("resources") or {}).get("limits", {}).get("memory", "none of its own")
            yield Failure(
                Ref.of(pod),
                f"container {name} was OOMKilled (memory limit {limit})",
                "Raise its memory limit, or let it use less.",
                name,
            )
        elif reason == "CrashLoopBackOff" and baseline.restarted(pod, status):
            yield Failure(
                Ref.of(pod),
                f"container {name} keeps ending (exit code {ended.get('exitCode', '?')}, {status['restartCount']} restarts)",
                "Read the log lines below.",
                name,
            )
        elif reason in CONTAINER_REASONS and not _may_pass(waiting.get("message", "")):
            yield Failure(
                Ref.of(pod),
                f"container {name} is waiting with {reason} ({_short(waiting.get('message', ''))})",
                CONTAINER_REASONS[reason].format(image=status.get("image", "the image")),
            )


CONTAINER_REASONS = {
    "CreateContainerConfigError": "Create the ConfigMap or Secret that it names.",
    "ErrImageNeverPull": "Import {image} into the node's containerd, or let it be pulled.",
    "ImagePullBackOff": "Check the name {image}, the node's way to the registry, and its credentials.",
    "InvalidImageName": "Correct the image name {image}.",
    "RunContainerError": "See the Pod's events for what the runtime refused.",
}


def _may_pass(message: str) -> bool:
    """Whether a failed pull is of the kind that a later try can mend."""
    return re.search(r"429|toomanyrequests|timeout|timed out|connection reset|i/o|EOF", message, re.IGNORECASE) is not None


def _event_failures(obj: KubeObject, news: Iterable[KubeObject]) -> Iterator[Failure]:
    uid = obj["metadata"]["uid"]
    for event in news:
        if event.get("involvedObject", {}).get("uid") != uid:
            continue
        for reason, pattern, remedy in EVENT_SIGNS:
            found = re.search(pattern, event.get("message", "")) if event.get("reason") == reason else None
            if found:
                yield Failure(Ref.of(obj), f"{reason}: {_short(event['message'])}", remedy.format(*found.groups()))


EVENT_SIGNS: tuple[tuple[str, str, str], ...] = (
    (
        "FailedCreatePodSandBox",
        r'no runtime for "([^"]+)" is configured',
        "containerd has no handler {0} (a RuntimeClass object proves none): install nvidia-container-toolkit, then restart k3s.",
    ),
    (
        "FailedCreatePodSandBox",
        r"fork/exec (\S+): no such file or directory",
        "The runtime {0} is gone: install its package again, then restart k3s.",
    ),
    (
        "FailedCreate",
        r'RuntimeClass "([^"]+)" not found',
        "Create RuntimeClass {0}, or name an existing one (`kubectl get runtimeclass`); a Pod names the object, not its handler.",
    ),
    (
        "FailedCreate",
        r"violates PodSecurity",
        "The namespace's Pod Security level forbids this Pod: change the Pod, not the level.",
    ),
    ("FailedCreate", r"exceeded quota", "Raise the namespace's ResourceQuota or ask for less."),
    ("FailedMount", r'MountVolume.NewMounter initialization failed .* path "([^"]+)" does not exist', "Create {0} on the node."),
    (
        "Failed",
        r'failed to stat CDI host device "([^"]+)"',
        "{0} is missing on the node: run nvidia-smi there, and load the driver.",
    ),
)
"""(event reason, pattern in its message, remedy): signs that waiting does not help."""


def _rejections(pods: Sequence[KubeObject]) -> Iterator[Failure]:
    """Pods that the kubelet refused. After a reboot one or two are normal: the device plugin was not back yet."""
    rejected = [pod for pod in pods if pod.get("status", {}).get("reason") == "UnexpectedAdmissionError"]
    for pod in rejected:
        message = pod["status"].get("message", "")
        lasting = "maximum request size for shared resources" in message
        if lasting or len(rejected) >= REPEATED_REJECTIONS:
            yield Failure(
                Ref.of(pod),
                f"UnexpectedAdmissionError: {_short(message)} ({len(rejected)} rejected so far)",
                "Ask for exactly 1 of a shared GPU."
                if lasting
                else "See the device plugin's log and the node's allocatable GPUs.",
            )


def _passed_deadlines(workload: KubeObject) -> list[KubeObject]:
    conditions = workload.get("status", {}).get("conditions") or []
    return [entry for entry in conditions if entry.get("reason") == "ProgressDeadlineExceeded" and entry.get("status") == "False"]


def _deadline_key(workload: KubeObject, entry: KubeObject) -> tuple[str, str]:
    return workload["metadata"]["uid"], str(entry.get("lastUpdateTime", ""))


def _deadline(workload: KubeObject, baseline: Baseline) -> Iterator[Failure]:
    for entry in _passed_deadlines(workload):
        if _deadline_key(workload, entry) not in baseline.deadlines:
            yield Failure(
                Ref.of(workload),
                f"ProgressDeadlineExceeded: {_short(entry.get('message', ''))}",
                "See its Pods, or raise progressDeadlineSeconds.",
            )


def _ended(workload: KubeObject) -> Iterator[Failure]:
    """A Pod or Job that has failed for good; what has a controller above it is replaced by it."""
    status = workload.get("status", {})
    if workload["kind"] == "Pod" and status.get("phase") == "Failed":
        why = ": ".join(part for part in (status.get("reason"), status.get("message")) if part)
        yield Failure(Ref.of(workload), f"phase Failed ({_short(why or 'no reason given')})", "See its log, then delete it.")
    if workload["kind"] == "Job" and condition(workload, "Failed") == "True":
        yield Failure(Ref.of(workload), "condition Failed", "See its Pods' logs, then delete it.")


def last_sign(evidence: Evidence) -> str:
    """The latest warning about a workload's Pods, for the message of a wait that ran out; empty when there is none."""
    pending = [pod for pod in evidence.pods if condition(pod, "PodScheduled") == "False"]
    for pod in pending:
        for entry in pod["status"]["conditions"]:
            if entry["type"] == "PodScheduled" and entry.get("message"):
                return f"{Ref.of(pod)} is not scheduled: {_short(entry['message'])}"
    warnings = [event for event in evidence.events if event.get("type") == "Warning"]
    latest = max(warnings, key=_event_time, default=None)
    return f"last warning, {latest.get('reason')}: {_short(latest.get('message', ''))}" if latest else ""


def _event_time(event: KubeObject) -> str:
    series = (event.get("series") or {}).get("lastObservedTime")
    return str(series or event.get("lastTimestamp") or event.get("eventTime") or event["metadata"].get("creationTimestamp") or "")


def _event_key(event: KubeObject) -> tuple[str, str]:
    return event["metadata"]["uid"], event["metadata"]["resourceVersion"]


def _container_statuses(pod: KubeObject) -> list[KubeObject]:
    status = pod.get("status", {})
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]


def _short(text: str, limit: int = 300) -> str:
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= limit else line[: limit - 1] + "…"


LOG_SIGNS: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (
        r"Insufficient space in /dev/shm.*?(\d+ \w+) required, (\d+ \w+) free",
        lambda m: f"The shared memory is too small ({m[2]} free, {m[1]} needed): enlarge the Memory emptyDir at /dev/shm.",
    ),
    (
        r"Free memory on device.*?\(([\d.]+)/([\d.]+) GiB\).*?utilization \(([\d.]+), ([\d.]+) GiB\)",
        lambda m: (
            f"The GPU had {m[1]} of {m[2]} GiB free and {m[4]} GiB were asked for: lower gpu-memory-utilization ({m[3]}) "
            "or stop what else uses the GPU."
        ),
    ),
    (
        r"No available memory for the cache blocks",
        lambda _m: "Nothing is left for the KV cache after the weights: raise gpu-memory-utilization or take a smaller model.",
    ),
    (
        r"estimated maximum model length is (\d+)",
        lambda m: f"The KV cache is too small for max-model-len: {m[1]} would fit.",
    ),
    (
        r"maximum number of tokens that can be stored in KV cache \((\d+)\)",
        lambda m: f"The KV cache is too small for max-model-len: {m[1]} would fit.",
    ),
    (
        r"([\d.]+ GiB) KV cache is needed, .*?KV cache memory \(([\d.]+ GiB)\)",
        lambda m: f"The KV cache is too small for max-model-len: {m[1]} needed, {m[2]} there. Lower it.",
    ),
    (r"is gated|401 Client Error", lambda _m: "The model is gated: give vllm_server_hf_token a token that may read it."),
    (r"403 Client Error", lambda _m: "The token's account may not read this model: accept its licence on the hub."),
    (
        r"Failed to infer device type|UnspecifiedPlatform",
        lambda _m: "No GPU in the Pod: check runtimeClassName, then the GPU limit, then libcuda, in this order.",
    ),
    (
        r"PermissionError: \[Errno 13\] Permission denied: '([^']+)'",
        lambda m: f"The engine's user may not write {m[1]}: check the owner of the cache folder and HF_HOME.",
    ),
    (
        r"getpwuid\(\): uid not found: (\d+)",
        lambda m: f"User {m[1]} is not in the image's passwd file: use the image's own user.",
    ),
    (
        r"VLLM_PORT '(\S+)' appears to be a URI",
        lambda _m: "A Service named vllm sets VLLM_PORT: rename it, or set enableServiceLinks to false.",
    ),
    (r"unrecognized arguments: (.+)", lambda m: f"This image does not know {m[1]}: correct vllm_server_args."),
)
"""(pattern in a container's log, its explanation)."""


def explain_log(log: str) -> str:
    """The explanation of the first known sign in a log, or an empty text."""
    for pattern, explain in LOG_SIGNS:
        found = re.search(pattern, log)
        if found:
            return explain(found)
    return ""
