"""Configuration of the NVIDIA device plugin: what its parser would silently drop is refused here. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ._errors import InvalidInputError

PLAIN_RESOURCE = "nvidia.com/gpu"
SHARED_SUFFIX = ".shared"

TOP_KEYS = frozenset({"version", "flags", "sharing", "resources"})
FLAG_KEYS = frozenset(
    {
        "migStrategy",
        "failOnInitError",
        "nvidiaDriverRoot",
        "nvidiaDevRoot",
        "gdsEnabled",
        "mofedEnabled",
        "plugin",
    }
)
PLUGIN_KEYS = frozenset(
    {"passDeviceSpecs", "deviceListStrategy", "deviceIDStrategy", "cdiAnnotationPrefix", "nvidiaCTKPath", "containerDriverRoot"}
)
TIME_SLICING_KEYS = frozenset({"renameByDefault", "failRequestsGreaterThanOne", "resources"})
RESOURCE_KEYS = frozenset({"name", "replicas"})
SHARING_ONLY = frozenset({"renameByDefault", "failRequestsGreaterThanOne", "replicas"})


def problems(config: Mapping[str, Any]) -> list[str]:
    """Everything in a configuration that the plugin would drop without a word, ignore, or crash on."""
    return [
        *_unknown(config, TOP_KEYS, ""),
        *_version(config),
        *_flags(config.get("flags") or {}),
        *_sharing(config.get("sharing") or {}),
    ]


def checked(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration itself.

    :raises InvalidInputError: naming every problem and the right place for misplaced keys
    """
    found = problems(config)
    if found:
        raise InvalidInputError(
            "Checking the configuration of the device plugin",
            "; ".join(found),
            "Correct it: the plugin itself would start and do something else.",
        )
    return dict(config)


def time_slicing(replicas: int, *, rename: bool, refuse_more_than_one: bool) -> dict[str, Any]:
    """The ``sharing`` block for ``replicas`` slices a GPU; empty for one, since the plugin refuses fewer than two.

    :param rename: advertise ``nvidia.com/gpu.shared`` instead of ``nvidia.com/gpu``
    :param refuse_more_than_one: a container that asks for two slices gets none: two slices are not twice the GPU
    """
    if replicas == 1:
        return {}
    return {
        "timeSlicing": {
            "renameByDefault": rename,
            "failRequestsGreaterThanOne": refuse_more_than_one,
            "resources": [{"name": PLAIN_RESOURCE, "replicas": replicas}],
        }
    }


def advertised(config: Mapping[str, Any], gpus: int) -> dict[str, int]:
    """What the node must offer as allocatable under this configuration, by resource name.

    A renamed resource leaves 0 of the plain one: absent and 0 are both right.
    """
    slicing = (config.get("sharing") or {}).get("timeSlicing") or {}
    replicas = next((entry["replicas"] for entry in slicing.get("resources") or [] if entry["name"] == PLAIN_RESOURCE), 1)
    if replicas > 1 and slicing.get("renameByDefault"):
        return {PLAIN_RESOURCE + SHARED_SUFFIX: gpus * replicas, PLAIN_RESOURCE: 0}
    return {PLAIN_RESOURCE: gpus * replicas, PLAIN_RESOURCE + SHARED_SUFFIX: 0}


def _unknown(block: Mapping[str, Any], known: frozenset[str], path: str) -> list[str]:
    return [f"{path}{key} is not a key that the plugin knows{_right_place(key)}" for key in block if key not in known]


def _right_place(key: str) -> str:
    if key == "replicas":
        return " there (it belongs into an entry of sharing.timeSlicing.resources)"
    return f" there (it belongs under sharing.timeSlicing.{key})" if key in SHARING_ONLY else ""


def _version(config: Mapping[str, Any]) -> list[str]:
    return [] if config.get("version") == "v1" else [f"version is {config.get('version')!r}, and must be v1"]


def _flags(flags: Mapping[str, Any]) -> list[str]:
    return [*_unknown(flags, FLAG_KEYS, "flags."), *_unknown(flags.get("plugin") or {}, PLUGIN_KEYS, "flags.plugin.")]


def _sharing(sharing: Mapping[str, Any]) -> list[str]:
    found = _unknown(sharing, frozenset({"timeSlicing", "mps"}), "sharing.")
    if "timeSlicing" in sharing and "mps" in sharing:
        found.append("sharing.mps and sharing.timeSlicing are both set, and mps would win: keep one")
    for kind in ("timeSlicing", "mps"):
        found += _slicing(sharing.get(kind) or {}, f"sharing.{kind}.")
    if "timeSlicing" in sharing and not (sharing["timeSlicing"] or {}).get("resources"):
        found.append("sharing.timeSlicing.resources is empty, so that nothing is shared")
    return found


def _slicing(block: Mapping[str, Any], path: str) -> list[str]:
    found = _unknown(block, TIME_SLICING_KEYS, path)
    for position, entry in enumerate(block.get("resources") or []):
        found += _resource(entry, f"{path}resources[{position}].")
    return found


def _resource(entry: Mapping[str, Any], path: str) -> list[str]:
    found = [f"{path}{key} is ignored by the plugin: leave it out" for key in ("rename", "devices") if key in entry]
    found += _unknown({key: value for key, value in entry.items() if key not in ("rename", "devices")}, RESOURCE_KEYS, path)
    replicas = entry.get("replicas")
    if isinstance(replicas, bool) or not isinstance(replicas, int) or replicas < 2:
        found.append(f"{path}replicas is {replicas!r}, and must be a whole number from 2 up (for 1 leave the block out)")
    if not str(entry.get("name", "")).startswith("nvidia.com/"):
        found.append(f"{path}name is {entry.get('name')!r}, and must begin with nvidia.com/")
    return found
