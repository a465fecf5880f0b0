"""How many GPUs a machine has, and whether its node offers what the device plugin's configuration promises."""

from __future__ import annotations

from collections.abc import Mapping

from ._errors import LibraryError
from ._kube import Kube
from ._objects import Ref
from ._runner import Runner
from ._serving import allocatable

PLUGIN_LOG_SIGNS = (
    ("could not load NVML library", "The plugin's Pod has no driver library: it must run with the RuntimeClass nvidia."),
    ("ERROR_LIBRARY_NOT_FOUND", "The plugin's Pod has no driver library: it must run with the RuntimeClass nvidia."),
    ("Driver/library version mismatch", "The loaded driver is older than its libraries: reboot the node."),
    ("Driver Not Loaded", "The driver's kernel module is not loaded: run nvidia-smi on the node."),
    ("GPU is lost", "The GPU fell off the bus: reboot the node."),
    ("number of replicas must be >= 2", "The plugin refuses fewer than 2 replicas: leave the sharing block out."),
    ("No devices found", "The plugin sees no GPU: run nvidia-smi on the node."),
)
"""(text in the plugin's log, what it means)."""


def count(runner: Runner) -> int:
    """Number of GPUs that the driver sees.

    :raises LibraryError: when the driver does not answer
    """
    done = runner.run(["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"])
    found = [line for line in done.out.splitlines() if line.strip().startswith("GPU-")]
    if done.rc == 0 and found:
        return len(found)
    words = (done.out.strip() or done.err.strip() or f"exit code {done.rc}").splitlines()[0]
    raise LibraryError("Counting the node's GPUs", f"nvidia-smi says {words}", "Run the role nvidia_driver first.")


def offered(kube: Kube, node: str, resources: Mapping[str, int]) -> dict[str, int | None]:
    """What the node offers of each resource; ``None`` for a name that it does not know.

    :raises LibraryError: when there is no such node
    """
    live = kube.read(Ref("v1", "Node", node))
    if live is None:
        names = ", ".join(item["metadata"]["name"] for item in kube.list("v1", "Node", None)) or "none"
        raise LibraryError(f"Reading Node {node}", f"it does not exist (nodes: {names})", "Name the node as kubectl does.")
    return {name: allocatable(live, name) for name in resources}


def as_promised(seen: Mapping[str, int | None], promised: Mapping[str, int]) -> bool:
    """Whether every resource has the promised count; for a promise of 0 the name may be absent too."""
    return all((seen[name] or 0) == wanted for name, wanted in promised.items())


def explain(plugin_log: str) -> str:
    """What the plugin's log means, or an empty text."""
    return next((meaning for text, meaning in PLUGIN_LOG_SIGNS if text in plugin_log), "")
