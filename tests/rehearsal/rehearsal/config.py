"""Names, addresses and folders of the rehearsal, in one place."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[3]
REHEARSAL = REPO / "tests" / "rehearsal"
CA_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")

K3S_VERSION = "v1.36.2+k3s1"
"""The release that the stand-in answers for; the same as in roles/k3s_server."""

NETWORK = "gpunode"
SUBNET = "10.89.77.0/24"
MIRROR_PORT = 8081
"""Port on the node's loopback where /srv/mirror is served."""

SSH_USER = "engineer"
"""A user with password-less sudo, as a cloud image gives one: become is exercised too."""


@dataclass(frozen=True)
class NodeSpec:
    """One disposable node.

    :param name: podman container name, also the node's hostname
    :param address: fixed IPv4 address on ``NETWORK``: certificates and the node name depend on it
    """

    name: str
    address: str


REHEARSAL_NODE = NodeSpec("gpunode-rehearsal", "10.89.77.10")
MOLECULE_NODE = NodeSpec("gpunode-molecule", "10.89.77.20")


def cache_root() -> Path:
    """Folder of everything the rehearsal builds and keeps: below ``GPUNODE_CACHE``, else below XDG_CACHE_HOME."""
    explicit = os.environ.get("GPUNODE_CACHE")
    if explicit:
        # A folder of its own below the named one: --destroy removes it whole.
        return Path(explicit).resolve() / "gpunode"
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "gpunode"
