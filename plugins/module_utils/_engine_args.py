"""The engine's command line as a dictionary. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ._errors import InvalidInputError

DEFAULT_UTILIZATION = 0.92
"""vLLM's own default of ``--gpu-memory-utilization`` (0.24 to 0.33)."""


def command_line(model: str, args: Mapping[str, Any]) -> list[str]:
    """Arguments of ``vllm serve``: the model first, as a positional argument, then one flag for each entry, in order.

    ``True`` gives ``--flag``, ``False`` ``--no-flag``, ``None`` nothing; a list gives the flag several values, and a
    dictionary goes as JSON.

    :raises InvalidInputError: for a name with leading dashes or underscores in it, and for the deprecated ``model``
    """
    words = [model]
    for name, value in args.items():
        _require_name(name)
        words += _flag(name, value)
    return words


def _require_name(name: str) -> None:
    attempted = f"Writing the engine's argument {name!r}"
    if name == "model":
        raise InvalidInputError(attempted, "the model is a positional argument", "Set vllm_server_model instead.")
    if name.startswith("-") or "_" in name or not name:
        wanted = name.lstrip("-").replace("_", "-")
        raise InvalidInputError(attempted, "it is not a flag's plain name", f"Write it as {wanted!r}.")


def _flag(name: str, value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    if isinstance(value, Mapping):
        return [f"--{name}", json.dumps(value, sort_keys=True, separators=(",", ":"))]
    words = [str(item) for item in value] if isinstance(value, (list, tuple)) else [str(value)]
    if len(words) == 1 and words[0].startswith("-"):
        return [f"--{name}={words[0]}"]
    return [f"--{name}", *words]


def memory_share(args: Mapping[str, Any]) -> float:
    """The share of the GPU's memory that one engine claims: the flag's value, or the engine's own default.

    :raises InvalidInputError: for a value outside 0 < share <= 1
    """
    value = args.get("gpu-memory-utilization", DEFAULT_UTILIZATION)
    try:
        share = float(value)
    except (TypeError, ValueError):
        share = 0.0
    if 0 < share <= 1:
        return share
    raise InvalidInputError(
        "Reading gpu-memory-utilization", f"it is {value!r}", "Give a share of the GPU's memory: more than 0, at most 1."
    )


def problems(args: Mapping[str, Any], model: str, replicas: int, elsewhere: float) -> list[str]:
    """Everything in an engine's settings that cannot work, as sentences; empty when nothing is wrong.

    :param replicas: number of engines with these arguments on the same GPU
    :param elsewhere: share of the GPU's memory that is promised to others
    """
    found: list[str] = []
    try:
        command_line(model, args)
    except InvalidInputError as error:
        found.append(str(error))
    try:
        share = memory_share(args)
    except InvalidInputError as error:
        return [*found, str(error)]
    total = round(share * replicas + elsewhere, 6)
    if total > 1:
        found.append(
            f"GPU memory: gpu-memory-utilization {share:g} times {replicas} replicas plus {elsewhere:g} elsewhere is {total:g} "
            "of the GPU's memory, more than all of it. Lower vllm_server_args['gpu-memory-utilization'] or vllm_server_replicas: "
            "time-slicing does not divide memory."
        )
    return found
