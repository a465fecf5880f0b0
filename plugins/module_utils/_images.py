"""Names of container images, and importing an archive into the node's containerd."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from ._errors import InvalidInputError, LibraryError
from ._runner import Runner

DEFAULT_REGISTRY = "docker.io"
REFERENCE = re.compile(
    r"(?P<path>[a-z0-9]+([._-][a-z0-9]+)*(:[0-9]+(?=/))?(/[a-z0-9]+((\.|_{1,2}|-+)[a-z0-9]+)*)*)"
    r"(:(?P<tag>[A-Za-z0-9_][A-Za-z0-9._-]{0,127}))?(@(?P<digest>sha256:[0-9a-f]{64}))?"
)


def normalised(image: str) -> str:
    """The full name under which containerd and the kubelet know an image.

    :raises InvalidInputError: for a name that no registry could serve, or one that does not pin a version
    """
    found = REFERENCE.fullmatch(image)
    attempted = f"Reading the image name {image!r}"
    if not found:
        raise InvalidInputError(attempted, "it is not of the form [registry/]name[:tag][@sha256:digest]", "Correct it.")
    if not found["digest"] and found["tag"] in (None, "latest"):
        raise InvalidInputError(attempted, "it names no fixed version", "Give a tag other than latest, or a digest.")
    first, slash, _rest = found["path"].partition("/")
    if not slash:
        return f"{DEFAULT_REGISTRY}/library/{image}"
    if "." in first or ":" in first or first == "localhost":
        return image
    return f"{DEFAULT_REGISTRY}/{image}"


def problems(image: str) -> list[str]:
    """What is wrong with an image's name, as sentences; empty when nothing is."""
    try:
        normalised(image)
    except InvalidInputError as error:
        return [str(error)]
    return []


@dataclass(frozen=True)
class Containerd:
    """The images of the node's containerd.

    :param runner: seam to the node's commands
    :param command: the ``ctr`` command, like ``["k3s", "ctr"]``
    """

    runner: Runner
    command: Sequence[str]

    def has(self, image: str) -> bool:
        """Whether the kubelet would find ``image`` without a pull.

        :raises LibraryError: when containerd does not answer
        """
        return image in self.images()

    def images(self) -> list[str]:
        """Names of all images in the namespace of Kubernetes."""
        return self._run(["images", "ls", "--quiet"], "Listing the node's images").split()

    def load(self, archive: str) -> None:
        """Import a docker or OCI archive file of the node."""
        self._run(["images", "import", "--local", archive], f"Importing the image archive {archive}")

    def _run(self, arguments: list[str], attempted: str) -> str:
        argv = [*self.command, "--namespace", "k8s.io", *arguments]
        done = self.runner.run(argv)
        if done.rc == 0:
            return done.out
        words = (done.err.strip() or done.out.strip() or f"exit code {done.rc}").splitlines()[-1]
        raise LibraryError(attempted, f"`{' '.join(argv)}` says {words}", "See `systemctl status k3s` and the file itself.")
