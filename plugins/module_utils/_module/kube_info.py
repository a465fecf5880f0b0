"""Body of the module kube_info."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from .._errors import ApiUnreachableError
from .._kube import ClusterKube, Kube
from .._objects import Ref, comparable, hidden
from .common import KUBECONFIG, guarded

ARGUMENT_SPEC: dict[str, Any] = {
    **KUBECONFIG,
    "api_version": {"type": "str", "default": "v1"},
    "kind": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
    "namespace": {"type": "str"},
}


def run_module(module: AnsibleModule, connect: Callable[[str], Kube] = ClusterKube) -> None:
    """Run the module to its end."""
    guarded(module, lambda: _run(module, connect))


def _run(module: AnsibleModule, connect: Callable[[str], Kube]) -> Mapping[str, Any]:
    params = module.params
    try:
        kube = connect(params["kubeconfig"])
    except ApiUnreachableError as error:
        if not module.check_mode:
            raise
        return {"changed": False, "reached": False, "seen": error.seen}
    live = kube.read(Ref(params["api_version"], params["kind"], params["name"], params["namespace"]))
    if live is None:
        return {"changed": False, "reached": True, "exists": False}
    shown = {**hidden(comparable(live), {}), "status": live.get("status", {})}
    return {"changed": False, "reached": True, "exists": True, "object": shown}
