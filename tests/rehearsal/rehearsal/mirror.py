"""The publishers' download sites as one folder, which the node serves to itself on its loopback."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from .workshop import Workshop


def build_mirror(workshop: Workshop, parts: Mapping[str, Path]) -> Path:
    """Assemble the mirror from artifacts by hard links (nothing is copied).

    :param parts: folder within the mirror (``k3s``, ``cuda/debian12/x86_64``, …) → folder whose content stands there
    :returns: artifact folder to be mounted as ``/srv/mirror``
    """

    def make(folder: Path) -> None:
        for place, source in parts.items():
            target = folder / place
            target.mkdir(parents=True, exist_ok=True)
            workshop.run(("cp", "--archive", "--link", f"{source}/.", target))
        # Served by an unprivileged user on the node.
        workshop.run(("chmod", "-R", "a+rX", folder))

    return workshop.artifact("mirror", make, extra=[f"{place}={source.name}" for place, source in sorted(parts.items())])
