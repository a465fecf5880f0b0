"""Filters of the role vllm_server."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

from ..module_utils._engine_args import command_line, memory_share
from ..module_utils._errors import LibraryError
from ..module_utils._images import normalised
from ..module_utils._plugin_config import problems, time_slicing


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
            "engine_command_line": command_line,
            "engine_memory_share": memory_share,
            "image_name": normalised,
            "plugin_config_problems": problems,
            "plugin_time_slicing": time_slicing,
        }
        return {name: _plain(function) for name, function in functions.items()}
