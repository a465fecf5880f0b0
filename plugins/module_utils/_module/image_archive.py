"""Body of the module image_archive."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from .._errors import LibraryError
from .._images import Containerd, normalised
from .._runner import Runner
from .common import ModuleRunner, guarded

ARGUMENT_SPEC: dict[str, Any] = {
    "image": {"type": "str", "required": True},
    "archive": {"type": "path", "required": True},
    "command": {"type": "list", "elements": "str", "default": ["k3s", "ctr"]},
}


def run_module(module: AnsibleModule, runner: Runner | None = None) -> None:
    """Run the module to its end."""
    guarded(module, lambda: _run(module, runner or ModuleRunner(module)))


def _run(module: AnsibleModule, runner: Runner) -> Mapping[str, Any]:
    image, archive = normalised(module.params["image"]), module.params["archive"]
    containerd = Containerd(runner, module.params["command"])
    try:
        present = containerd.has(image)
    except LibraryError:
        if not module.check_mode:
            raise
        present = False
    if present or module.check_mode:
        return _result(image, changed=not present)
    if not Path(archive).is_file():
        raise LibraryError(f"Importing {image}", f"there is no file {archive}", "Copy it there, or let the image be pulled.")
    before = set(containerd.images())
    containerd.load(archive)
    after = containerd.images()
    if image not in after:
        brought = ", ".join(sorted(set(after) - before)) or "no new image"
        raise LibraryError(f"Importing {image}", f"{archive} brought {brought}", "Use the archive's own name.")
    return _result(image, changed=True)


def _result(image: str, *, changed: bool) -> Mapping[str, Any]:
    return {
        "changed": changed,
        "image": image,
        "diff": {"before": "" if changed else f"{image}\n", "after": f"{image}\n"},
    }
