"""Body of the module wait_for_gpus."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from .._clock import Clock, SystemClock
from .._gpus import as_promised, count, explain, offered
from .._kube import ClusterKube, Kube
from .._plugin_config import advertised, checked
from .._runner import Runner
from .._wait import wait_until
from .common import KUBECONFIG, ModuleRunner, guarded

ARGUMENT_SPEC: dict[str, Any] = {
    **KUBECONFIG,
    "node": {"type": "str", "required": True},
    "config": {"type": "dict", "required": True},
    "gpus": {"type": "int", "default": 0},
    "namespace": {"type": "str", "default": "nvidia-device-plugin"},
    "selector": {"type": "str", "default": "app.kubernetes.io/name=nvidia-device-plugin"},
    "wait_timeout": {"type": "int", "default": 120},
}


def run_module(
    module: AnsibleModule,
    connect: Callable[[str], Kube] = ClusterKube,
    runner: Runner | None = None,
    clock: Clock | None = None,
) -> None:
    """Run the module to its end."""
    guarded(module, lambda: _run(module, connect, runner or ModuleRunner(module), clock or SystemClock()))


def _run(module: AnsibleModule, connect: Callable[[str], Kube], runner: Runner, clock: Clock) -> Mapping[str, Any]:
    params = module.params
    config = checked(params["config"])
    if module.check_mode:
        return {"changed": False, "allocatable": {}, "expected": {}, "elapsed": 0.0, "attempts": 0}
    kube = connect(params["kubeconfig"])
    promised = advertised(config, params["gpus"] or count(runner))
    waited = wait_until(
        lambda: offered(kube, params["node"], promised), lambda seen: as_promised(seen, promised), clock, params["wait_timeout"]
    )
    result = {
        "changed": False,
        "allocatable": waited.last,
        "expected": promised,
        "elapsed": round(waited.elapsed, 1),
        "attempts": waited.attempts,
    }
    if waited.done:
        return result
    seen = ", ".join(f"{name} {'absent' if number is None else number}" for name, number in waited.last.items())
    wanted = ", ".join(f"{name} {number}" for name, number in promised.items())
    remedy = explain(_plugin_log(kube, params)) or "See the device plugin's Pods: their log, and whether one runs here at all."
    return {
        **result,
        "failed": True,
        "msg": f"Waiting for the GPUs of Node {params['node']}: allocatable is {seen} after {waited.elapsed:.0f} s, "
        f"not {wanted}. {remedy}",
    }


def _plugin_log(kube: Kube, params: Mapping[str, Any]) -> str:
    pods = kube.list("v1", "Pod", params["namespace"], labels=params["selector"])
    containers = [(pod["metadata"]["name"], box["name"]) for pod in pods for box in pod["spec"]["containers"]]
    return "\n".join(kube.log(params["namespace"], pod, box, lines=200, previous=False) for pod, box in containers)
