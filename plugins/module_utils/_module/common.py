"""What the modules share: options, and turning the library's errors into one sentence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from .._errors import LibraryError
from .._runner import Completed

KUBECONFIG: dict[str, Any] = {"kubeconfig": {"type": "path", "default": "/etc/rancher/k3s/k3s.yaml"}}
"""Option of every module that talks to the API server; documented in the fragment C(kubeconfig)."""


class ModuleRunner:
    """Runs commands through Ansible's own helper.

    :param module: the running module
    """

    def __init__(self, module: AnsibleModule) -> None:
        self._module = module

    def run(self, argv: Sequence[str]) -> Completed:
        """Run ``argv`` without a shell; a program that does not exist gives exit code 127."""
        if not self._module.get_bin_path(argv[0]):
            return Completed(127, "", f"{argv[0]}: command not found")
        return Completed(*self._module.run_command(list(argv), handle_exceptions=True))


def guarded(module: AnsibleModule, body: Callable[[], Mapping[str, Any]], **on_failure: Any) -> None:
    """End the module with the result of ``body``, or with the sentence of a library error.

    :param on_failure: further values of a failed result
    """
    try:
        result = dict(body())
    except LibraryError as error:
        module.fail_json(msg=str(error), **on_failure)
    if result.pop("failed", False):
        module.fail_json(**result)
    module.exit_json(**result)
