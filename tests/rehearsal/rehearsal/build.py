"""Building all that a rehearsal needs: two lanes side by side, one compiling Go, one fetching and packing images."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from . import debs, device_plugin, goparts, images, k3s_release, tiny_model, vllm_image
from .interrupts import undisturbed
from .mirror import build_mirror
from .progress import Display
from .rootfs import build_rootfs
from .workshop import Workshop


@dataclass(frozen=True)
class Kit:
    """All that a node is made from.

    :param rootfs: root file system of the bare machine
    :param mirror: folder that the node serves to itself
    """

    rootfs: Path
    mirror: Path


def build_kit(workshop: Workshop, display: Display) -> Kit:
    """Build everything that is not there yet.

    :raises RehearsalError: when a part cannot be built; the other lane is stopped
    """
    made: dict[str, Path] = {}
    with workshop.locked("build"), workshop.stopping_together(), ThreadPoolExecutor(max_workers=3) as pool:
        # Compilers must not wait for downloads; what cannot be fetched is reported by the build that needs it.
        pool.submit(goparts.fetch_all, workshop)
        lanes = [pool.submit(_compile, workshop, display), pool.submit(_pack, workshop, display)]
        try:
            for lane in as_completed(lanes):
                made |= lane.result()
        except BaseException:
            with undisturbed():
                workshop.stop()
                pool.shutdown()
            raise
    mirror = build_mirror(workshop, _places(made))
    return Kit(rootfs=made["rootfs"] / "root", mirror=mirror)


def _step(workshop: Workshop, display: Display, title: str, make: Callable[[], Path]) -> Path:
    """Build one artifact as a stage of its own, which says when it was there already."""
    with display.stage(title) as stage:
        before = workshop.built_in_lane()
        result = make()
        stage.result = "done" if workshop.built_in_lane() > before else "reused"
    return result


def _compile(workshop: Workshop, display: Display) -> dict[str, Path]:
    parts: dict[str, Path] = {}
    for part in goparts.PARTS:
        make = partial(goparts.build_part, workshop, part.name)
        parts[part.name] = _step(workshop, display, f"compile {part.name}", make)
    pause = images.build_pause(workshop)
    k3s = _step(workshop, display, "pack k3s stand-in", lambda: k3s_release.build_k3s(workshop, parts))
    airgap = images.build_airgap_images(workshop, pause / "pause", parts["coredns"] / "coredns")
    return {
        "release": k3s_release.build_release(workshop, k3s, airgap),
        "toolkit": debs.build_toolkit_repo(workshop, parts["nvidia-container-toolkit"]),
    }


def _pack(workshop: Workshop, display: Display) -> dict[str, Path]:
    made = {
        "rootfs": _step(workshop, display, "make the bare machine (Debian 12)", lambda: build_rootfs(workshop)),
        "driver": _step(workshop, display, "pack the simulated driver", lambda: debs.build_driver_repo(workshop)),
        "vllm": _step(workshop, display, "pack vLLM for CPU", lambda: vllm_image.build_vllm_image(workshop)),
        "model": _step(workshop, display, "make a tiny model", lambda: tiny_model.build_tiny_model(workshop)),
    }
    # Compiled here: this lane is done long before Kubernetes is.
    plugin = _step(workshop, display, "compile device plugin stand-in", lambda: device_plugin.build_device_plugin(workshop))
    return {**made, "plugin": images.build_plugin_image(workshop, plugin / "root")}


def _places(made: Mapping[str, Path]) -> dict[str, Path]:
    return {
        "cuda/debian12/x86_64": made["driver"],
        "libnvidia-container": made["toolkit"],
        "k3s": made["release"],
        "images/vllm": made["vllm"],
        "images/plugin": made["plugin"],
        "models": made["model"],
    }
