"""The simulated machine's side of a GPU: what would be there before any driver is installed."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import config
from .simgpu import CFLAGS, SOURCES
from .workshop import Workshop

TREE = config.REHEARSAL / "hardware"
"""Laid over the root of the machine as it is."""

SOURCE_FILES = (TREE, SOURCES / "kmod.c", Path(__file__))
"""What decides whether a root file system has to be made anew."""

KMOD = "/usr/lib/rehearsal/kmod"
DIVERTED = ("/sbin/modprobe", "/sbin/rmmod", "/sbin/lsmod", "/bin/lsmod")


def install_hardware(workshop: Workshop, root: Path) -> None:
    """Put the hardware into a Debian root: units that show it at boot, and modprobe, rmmod, lsmod with a simulated last step.

    The tools of kmod stay behind them (diverted, so that an upgrade of kmod does not undo it).

    :param root: a root file system that is not running
    """
    for source in sorted(path for path in TREE.rglob("*") if path.is_file()):
        target = root / source.relative_to(TREE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    for unit in sorted((TREE / "etc/systemd/system").glob("*.service")):
        workshop.run(("chroot", root, "systemctl", "enable", unit.name))
    workshop.run(("gcc", *CFLAGS, "-o", root / KMOD.lstrip("/"), SOURCES / "kmod.c"))
    for path in DIVERTED:
        # Without --rename: the real names are links to /bin/kmod, which is what gets executed.
        workshop.run(("chroot", root, "dpkg-divert", "--local", "--add", "--no-rename", "--divert", f"{path}.kmod", path))
        (root / path.lstrip("/")).unlink()
        (root / path.lstrip("/")).symlink_to(KMOD)
