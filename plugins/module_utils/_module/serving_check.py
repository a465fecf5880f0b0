"""Body of the module serving_check."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from .._clock import Clock, SystemClock
from .._gpus import count
from .._http import Http, HttpxClient
from .._kube import ClusterKube, Kube
from .._plugin_config import advertised, checked
from .._runner import Runner
from .._serving import GROUPS, Target, is_own_address
from .._verify import verify
from .common import KUBECONFIG, ModuleRunner, guarded

ARGUMENT_SPEC: dict[str, Any] = {
    **KUBECONFIG,
    "checks": {"type": "list", "elements": "str", "choices": list(GROUPS), "default": list(GROUPS)},
    "node": {"type": "str", "default": ""},
    "resource": {"type": "str", "default": "nvidia.com/gpu.shared"},
    "plugin_config": {"type": "dict"},
    "gpus": {"type": "int", "default": 0},
    "runtime_handler": {"type": "str", "default": "nvidia"},
    "namespace": {"type": "str", "required": True},
    "service": {"type": "str", "required": True},
    "port": {"type": "int", "default": 8000},
    "model": {"type": "str", "required": True},
    "probe_image": {"type": "str", "required": True},
    "timeout": {"type": "int", "default": 20},
    "labels": {"type": "dict", "default": {}},
}


def run_module(
    module: AnsibleModule,
    connect: Callable[[str], Kube] = ClusterKube,
    http: Callable[[], Http] = HttpxClient,
    clock: Clock | None = None,
    runner: Runner | None = None,
    is_local: Callable[[str], bool] = is_own_address,
) -> None:
    """Run the module to its end.

    :param connect: makes the seam to the API server from a kubeconfig path
    :param http: makes the seam to HTTP servers
    """
    params = module.params
    target = Target(
        namespace=params["namespace"],
        service=params["service"],
        port=params["port"],
        model=params["model"],
        image=params["probe_image"],
        node=params["node"],
        resource=params["resource"],
        handler=params["runtime_handler"],
        timeout=params["timeout"],
    )
    guarded(
        module,
        lambda: {
            "changed": False,
            **_result(
                verify(
                    target,
                    params["checks"],
                    connect=lambda: connect(params["kubeconfig"]),
                    http=http,
                    clock=clock or SystemClock(),
                    promised=lambda: _promised(params, runner or ModuleRunner(module)),
                    labels={key: str(value) for key, value in params["labels"].items()},
                    is_local=is_local,
                    pods_allowed=not module.check_mode,
                )
            ),
        },
    )


def _promised(params: Mapping[str, Any], runner: Runner) -> int | None:
    if params["plugin_config"] is None:
        return None
    return advertised(checked(params["plugin_config"]), params["gpus"] or count(runner)).get(params["resource"], 0)


def _result(document: dict[str, Any]) -> dict[str, Any]:
    return {"checks": document["checks"], "verdict": document["verdict"], "document": document}
