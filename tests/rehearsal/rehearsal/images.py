"""The small container images of the rehearsal: the two of k3s's airgap archive, and the device plugin."""

from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from . import docker_archive, gobuild
from .config import REHEARSAL
from .docker_archive import Image, write_docker_archive
from .workshop import Workshop

PAUSE_TAG = "docker.io/rancher/mirrored-pause:3.6"
COREDNS_TAG = "docker.io/rancher/mirrored-coredns-coredns:1.14.7"
PLUGIN_TAG = "docker.io/rehearsal/device-plugin:0.19.3"
AIRGAP_NAME = "k3s-airgap-images-amd64.tar.zst"
PLUGIN_NAME = "device-plugin.tar"

_WRITER = Path(docker_archive.__file__)


def build_pause(workshop: Workshop) -> Path:
    """Build the static program that holds a Pod's namespaces.

    :returns: folder with the program ``pause``
    """
    source = REHEARSAL / "go" / "pause"

    def make(folder: Path) -> None:
        gobuild.go_build(workshop, source, ".", folder / "pause")

    return workshop.artifact("part-pause", make, sources=[source], extra=[gobuild.KEY])


def build_airgap_images(workshop: Workshop, pause: Path, coredns: Path) -> Path:
    """Build the archive that k3s publishes beside its binary, with the two images that this cluster runs.

    :param pause: the static pause program, in its artifact folder
    :param coredns: the static CoreDNS program, in its artifact folder
    :returns: folder with ``k3s-airgap-images-amd64.tar.zst``
    """

    def make(folder: Path) -> None:
        with TemporaryDirectory(dir=folder) as name:
            scratch = Path(name)
            pause_root = _root_with(scratch / "pause", pause, "pause")
            coredns_root = _root_with(scratch / "coredns", coredns, "coredns")
            images = [
                Image(tags=[PAUSE_TAG], layers=[pause_root], entrypoint=["/pause"], user="65535:65535"),
                Image(tags=[COREDNS_TAG], layers=[coredns_root], entrypoint=["/coredns"]),
            ]
            tar = scratch / "images.tar"
            write_docker_archive(tar, images)
            workshop.run(["zstd", "--quiet", "-6", "-T2", tar, "-o", folder / AIRGAP_NAME])

    return workshop.artifact(
        "image-airgap", make, sources=[Path(__file__), _WRITER], extra=[pause.parent.name, coredns.parent.name]
    )


def build_plugin_image(workshop: Workshop, root: Path) -> Path:
    """Build the image of the device plugin stand-in.

    :param root: its root folder, which has the program at ``/usr/bin/nvidia-device-plugin``
    :returns: folder with ``device-plugin.tar``
    """

    def make(folder: Path) -> None:
        # The environment of NVIDIA's image: the container toolkit gives the plugin itself the driver's library by it.
        environment = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_DRIVER_CAPABILITIES": "compute,utility"}
        image = Image(tags=[PLUGIN_TAG], layers=[root], entrypoint=["/usr/bin/nvidia-device-plugin"], env=environment)
        write_docker_archive(folder / PLUGIN_NAME, [image])

    return workshop.artifact("image-device-plugin", make, sources=[Path(__file__), _WRITER, root])


def _root_with(root: Path, program: Path, name: str) -> Path:
    """Make a root folder that holds one program."""
    root.mkdir()
    shutil.copyfile(program, root / name)
    (root / name).chmod(0o755)
    return root
