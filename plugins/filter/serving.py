"""Filters of the roles nvidia_device_plugin and vllm_server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils import _engine_args, _images, _plugin_config
from ..module_utils._errors import LibraryError


def _plain(function: Callable[..., Any]) -> Callable[..., Any]:
    """The library's sentence as Ansible's kind of error."""

    def filtered(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except LibraryError as error:
            raise AnsibleFilterError(str(error)) from error

    return filtered


class FilterModule:
    """One filter for each pure function that templates and preflights need."""

    def filters(self) -> Mapping[str, Callable[..., Any]]:
        """Filters by name."""
        functions: dict[str, Callable[..., Any]] = {
            "engine_command_line": _engine_args.command_line,
            "engine_problems": _engine_args.problems,
            "image_problems": _images.problems,
            "plugin_config_problems": _plugin_config.problems,
            "plugin_time_slicing": _plugin_config.time_slicing,
        }
        return {name: _plain(function) for name, function in functions.items()}
