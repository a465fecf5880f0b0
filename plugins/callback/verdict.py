"""Print all checks of a run as one table at its end."""

from __future__ import annotations

from typing import Any

from ansible.plugins.callback import CallbackBase

from ..module_utils._table import table, tally

DOCUMENTATION = r"""
name: verdict
type: aggregate
short_description: One table of all checks at the end of a run
version_added: 0.1.0
description:
  - Collects the C(checks) that modules like M(gpunode.serving.serving_check) return, and prints for each host one table of what
    was checked, what was seen, and whether that passes, fails or cannot be told.
  - A check that is made twice in one run counts with its last verdict.
requirements:
  - enable it with C(callbacks_enabled = gpunode.serving.verdict)
author:
  - The gpunode.serving contributors
"""

COLOURS = {"pass": "green", "fail": "red", "cannot_tell": "yellow"}


class CallbackModule(CallbackBase):  # type: ignore[misc]
    """Collects checks by host, the last of each name and object."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "gpunode.serving.verdict"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self) -> None:
        super().__init__()
        self._checks: dict[str, dict[tuple[str, str], dict[str, str]]] = {}

    def v2_runner_on_ok(self, result: Any) -> None:
        """Keep the checks of a task that succeeded."""
        self._keep(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """Keep the checks of a task that failed."""
        self._keep(result)

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """Print what was kept, worst verdict in its colour."""
        for host, found in self._checks.items():
            checks = list(found.values())
            self._display.banner(f"VERDICT [{host}]")
            for line in table(checks):
                self._display.display(line)
            worst = next((kind for kind in ("fail", "cannot_tell") if any(c["verdict"] == kind for c in checks)), "pass")
            self._display.display(tally(checks), color=COLOURS[worst])

    def _keep(self, result: Any) -> None:
        checks = result.result.get("checks")
        if not isinstance(checks, list):
            return
        kept = self._checks.setdefault(result.host.get_name(), {})
        for check in checks:
            if isinstance(check, dict) and {"name", "object", "verdict"} <= check.keys():
                # The order is that of the last time.
                kept.pop((check["name"], check["object"]), None)
                kept[check["name"], check["object"]] = check
