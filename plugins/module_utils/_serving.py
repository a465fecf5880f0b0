"""Checking that a model is served: node, endpoints, and the Service's cluster DNS name."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _probe
from ._checks import Check
from ._clock import Clock
from ._errors import LibraryError
from ._http import Answer, Http
from ._kube import Kube
from ._objects import KubeObject, Ref

CLUSTER_DOMAIN = "cluster.local"
GROUPS = ("node", "endpoints", "dns")
QUESTION = "Say hello."
COMPLETION_TOKENS = 16
SHOWN_LENGTH = 40


@dataclass(frozen=True)
class Target:
    """What is to be checked.

    :param node: name of the node, empty for the only one
    :param resource: extended resource under which the node offers its GPUs
    :param handler: runtime handler that the node's containerd must have
    :param model: served model name
    :param image: image with python3 for the probe Pod
    :param timeout: seconds for one request, and for a probe Pod six times that
    """

    namespace: str
    service: str
    port: int
    model: str
    image: str
    node: str = ""
    resource: str = "nvidia.com/gpu.shared"
    handler: str = "nvidia"
    timeout: int = 20

    @property
    def base(self) -> str:
        """The Service's URL as Pods of other namespaces see it."""
        return f"http://{self.service}.{self.namespace}.svc.{CLUSTER_DOMAIN}:{self.port}"

    def subject(self) -> dict[str, str]:
        """What was checked, for the result document."""
        return {"node": self.node, "namespace": self.namespace, "service": self.service, "model": self.model}


Promised = Callable[[], int | None]
"""Tells how many GPUs the node must offer, ``None`` for at least one."""


@dataclass(frozen=True)
class Findings:
    """Checks of one group, and what else was learnt on the way."""

    checks: Sequence[Check]
    versions: Mapping[str, str]
    completion: str = ""


def requests(model: str) -> list[KubeObject]:
    """The requests whose answers prove that a model is served."""
    chat = {
        "model": model,
        "messages": [{"role": "user", "content": QUESTION}],
        "max_tokens": COMPLETION_TOKENS,
        "temperature": 0,
    }
    return [
        {"name": "health", "method": "GET", "path": "/health", "body": None},
        {"name": "models", "method": "GET", "path": "/v1/models", "body": None},
        {"name": "chat completion", "method": "POST", "path": "/v1/chat/completions", "body": chat},
        {"name": "version", "method": "GET", "path": "/version", "body": None},
    ]


# --- node


def check_node(kube: Kube, target: Target, promised: Promised) -> Findings:
    """The node's runtime handler and its allocatable GPUs."""
    node = _node(kube, target.node)
    if node is None:
        seen = f"node {target.node} does not exist" if target.node else "there is not exactly one node"
        check = Check.open("node", target.node or "cluster", seen=seen, expected="a node", remedy="Name the node.")
        return Findings([check], {})
    info = node.get("status", {}).get("nodeInfo", {})
    keys = {"kubelet": "kubeletVersion", "containerd": "containerRuntimeVersion", "os": "osImage", "kernel": "kernelVersion"}
    versions = {name: info[key] for name, key in keys.items() if key in info}
    return Findings([judge_handler(node, target), _check_allocatable(node, target, promised)], versions)


def _node(kube: Kube, name: str) -> KubeObject | None:
    if name:
        return kube.read(Ref("v1", "Node", name))
    nodes = kube.list("v1", "Node", None)
    return nodes[0] if len(nodes) == 1 else None


def judge_handler(node: KubeObject, target: Target) -> Check:
    """A RuntimeClass object exists on every k3s; only the node's own list proves that containerd has the handler."""
    name, where = f"runtime handler {target.handler}", str(Ref.of(node))
    expected = f"{target.handler} among the node's runtimeHandlers"
    if "runtimeHandlers" not in node.get("status", {}):
        remedy = "See containerd's config.toml on the node."
        return Check.open(name, where, seen="the node does not list its runtimeHandlers", expected=expected, remedy=remedy)
    found = sorted(entry["name"] or "(default)" for entry in node["status"]["runtimeHandlers"])
    return Check.judged(
        name,
        where,
        target.handler in found,
        seen=", ".join(found),
        expected=expected,
        remedy="Install nvidia-container-toolkit, then restart k3s: it looks for runtimes only when it starts.",
    )


def _check_allocatable(node: KubeObject, target: Target, promised: Promised) -> Check:
    try:
        wanted = promised()
    except LibraryError as error:
        count = allocatable(node, target.resource)
        seen = f"{'absent' if count is None else count}, but how many are promised is unknown: {error.seen}"
        name, expected = f"allocatable {target.resource}", "GPUs times replicas"
        return Check.open(name, str(Ref.of(node)), seen=seen, expected=expected, remedy=error.remedy)
    return judge_allocatable(node, target.resource, wanted)


def judge_allocatable(node: KubeObject, resource: str, wanted: int | None) -> Check:
    """Allocatable, never capacity: capacity keeps devices that are unhealthy.

    :param wanted: the exact count, or ``None`` for at least one
    """
    count = allocatable(node, resource)
    return Check.judged(
        f"allocatable {resource}",
        str(Ref.of(node)),
        (count or 0) >= 1 if wanted is None else (count or 0) == wanted,
        seen="absent" if count is None else str(count),
        expected="at least 1" if wanted is None else str(wanted),
        remedy="See the device plugin's log: fewer than expected is an unhealthy GPU or a configuration not applied yet.",
    )


def allocatable(node: KubeObject, resource: str) -> int | None:
    """How many of ``resource`` the node offers, ``None`` when it does not know the name."""
    count = node.get("status", {}).get("allocatable", {}).get(resource)
    return None if count is None else int(count)


# --- answers


Judge = Callable[[str, Answer, Target], Check]


def judge_health(where: str, answer: Answer, target: Target) -> Check:
    """``/health`` says whether the engine process lives; whether it answers is the completion's business."""
    return _judge_answer("health", where, answer, target, "HTTP 200", lambda: (answer.status == 200, f"HTTP {answer.status}"))


def judge_models(where: str, answer: Answer, target: Target) -> Check:
    """``/v1/models`` lists the model under the name that clients use."""

    def look() -> tuple[bool, str]:
        data = answer.data()
        served = [str(entry.get("id")) for entry in data.get("data") or []] if isinstance(data, dict) else []
        return target.model in served, f"HTTP {answer.status}, {', '.join(served) or 'no model'}"

    return _judge_answer("models", where, answer, target, f"model {target.model}", look)


def judge_chat(where: str, answer: Answer, target: Target) -> Check:
    """A completion with at least one token; which words come is the model's business."""

    def look() -> tuple[bool, str]:
        tokens = _tokens(answer)
        if tokens:
            return True, f"{tokens} tokens in {answer.seconds:.2f} s: {_one_line(completion_text(answer))!r}"
        return False, f"HTTP {answer.status}, {_one_line(answer.body) or 'empty body'}"

    return _judge_answer("chat completion", where, answer, target, "HTTP 200 and at least 1 token", look)


JUDGES: dict[str, Judge] = {"health": judge_health, "models": judge_models, "chat completion": judge_chat}


def _judge_answer(
    name: str, where: str, answer: Answer, target: Target, expected: str, look: Callable[[], tuple[bool, str]]
) -> Check:
    remedy = f"See the engine's log: `kubectl -n {target.namespace} get pods`, then `logs`."
    if answer.status:
        good, seen = look()
        return Check.judged(name, where, good and answer.status == 200, seen=seen, expected=expected, remedy=remedy)
    if answer.refused:
        seen = f"connection refused ({_one_line(answer.body)})"
        return Check.judged(name, where, False, seen=seen, expected=expected, remedy=remedy)
    remedy = "See the Pod network (`journalctl -u k3s`) and NetworkPolicies of the namespace."
    return Check.open(name, where, seen=f"no answer ({_one_line(answer.body)})", expected=expected, remedy=remedy)


def _tokens(answer: Answer) -> int:
    data = answer.data()
    usage = data.get("usage") if isinstance(data, dict) and data.get("choices") else None
    return int((usage or {}).get("completion_tokens") or 0)


def completion_text(answer: Answer) -> str:
    """Text of a chat completion; empty when the answer is none."""
    data = answer.data()
    choices = data.get("choices") if isinstance(data, dict) else None
    return str(((choices or [{}])[0].get("message") or {}).get("content") or "")


def _one_line(text: str) -> str:
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= SHOWN_LENGTH else line[: SHOWN_LENGTH - 1] + "…"


# --- endpoints


def check_endpoints(kube: Kube, http: Http, target: Target, is_local: Callable[[str], bool]) -> Findings:
    """Ask every ready address behind the Service, each by itself.

    :param is_local: tells whether an address is one of this machine: Pod addresses are reached from a node only
    """
    name = f"Service {target.namespace}/{target.service}"
    slices = kube.list(
        "discovery.k8s.io/v1", "EndpointSlice", target.namespace, labels=f"kubernetes.io/service-name={target.service}"
    )
    ready, waiting = addresses(slices)
    count = Check.judged(
        "endpoints",
        name,
        bool(ready),
        seen=f"{len(ready)} ready, {waiting} not ready",
        expected="at least 1 ready address",
        remedy=f"See `kubectl -n {target.namespace} get pods`; with no Pod there, compare the Service's selector with labels.",
    )
    if ready and not any(is_local(address) for node in kube.list("v1", "Node", None) for address in node_addresses(node)):
        seen = "this machine is no node of the cluster, and Pod addresses are reached from a node only"
        remedy = "Run this on the node; the Service's DNS name can be checked from anywhere."
        away = [Check.open("endpoint", f"endpoint {address}", seen=seen, expected="answers", remedy=remedy) for address in ready]
        return Findings([count, *away], {})
    checks, versions, text = [count], {}, ""
    for address in ready:
        answers = {r["name"]: _send(http, f"http://{address}", r, target.timeout) for r in requests(target.model)}
        checks += judge_all(f"endpoint {address}", answers, target)
        versions.update(engine_version(answers))
        text = text or completion_text(answers["chat completion"])
    return Findings(checks, versions, text)


def node_addresses(node: KubeObject) -> list[str]:
    """Addresses under which a node is known."""
    return [entry["address"] for entry in node.get("status", {}).get("addresses") or [] if entry.get("type") == "InternalIP"]


def is_own_address(address: str) -> bool:
    """Whether ``address`` is one of this machine: only those can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def _send(http: Http, base: str, request: KubeObject, timeout: float) -> Answer:
    return http.request(request["method"], f"{base}{request['path']}", body=request["body"], timeout=timeout)


def addresses(slices: Sequence[KubeObject]) -> tuple[list[str], int]:
    """Ready ``address:port`` entries of EndpointSlices, and how many addresses are not ready."""
    ready: list[str] = []
    waiting = 0
    for item in slices:
        ports = [entry["port"] for entry in item.get("ports") or [] if entry.get("port")]
        for endpoint in item.get("endpoints") or []:
            if (endpoint.get("conditions") or {}).get("ready") is False or not ports:
                waiting += 1
                continue
            host = endpoint["addresses"][0]
            ready.append(f"[{host}]:{ports[0]}" if ":" in host else f"{host}:{ports[0]}")
    return sorted(ready), waiting


def judge_all(where: str, answers: Mapping[str, Answer], target: Target) -> list[Check]:
    """All answers of one server, judged."""
    return [judge(where, answers[name], target) for name, judge in JUDGES.items()]


def engine_version(answers: Mapping[str, Answer]) -> dict[str, str]:
    """The engine's version, if it told one."""
    data = answers["version"].data() if answers["version"].status == 200 else {}
    return {"vllm": str(data["version"])} if isinstance(data, dict) and data.get("version") else {}


# --- cluster DNS


def check_dns(kube: Kube, clock: Clock, target: Target) -> Findings:
    """Ask the Service by its cluster DNS name from a Pod, as its clients do."""
    name = target.base.removeprefix("http://")
    expected = "an answer inside the cluster"
    try:
        printed = _probe.ask(
            kube,
            clock,
            namespace=target.namespace,
            image=target.image,
            base=target.base,
            requests=requests(target.model),
            timeout=target.timeout * 6,
        )
    except LibraryError as error:
        return Findings([Check.open("probe Pod", name, seen=error.seen, expected=expected, remedy=error.remedy)], {})
    return judge_printed(printed, name, target)


def judge_printed(printed: Mapping[str, Any], name: str, target: Target) -> Findings:
    """The output of the probe Pod's program, judged."""
    resolved = Check.judged(
        "cluster DNS",
        name,
        bool(printed["address"]),
        seen=printed["address"] or printed["error"],
        expected="the Service's address",
        remedy="See CoreDNS (`kubectl -n kube-system get pods`) and whether the Service exists.",
    )
    if not printed["address"]:
        return Findings([resolved], {})
    answers = {key: Answer(**value) for key, value in printed["answers"].items()}
    checks = [resolved, *judge_all(name, answers, target)]
    return Findings(checks, engine_version(answers), completion_text(answers["chat completion"]))


def not_checked(group: str, target: Target, reason: str, remedy: str) -> Check:
    """One open check for a group that could not be looked at."""
    where = {"node": target.node or "node", "endpoints": f"Service {target.namespace}/{target.service}"}.get(group, target.base)
    return Check.open(group, where, seen=reason, expected="to be checked", remedy=remedy)
