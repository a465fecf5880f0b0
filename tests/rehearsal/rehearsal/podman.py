"""podman with a private configuration: the machine's own containers, networks and /etc/containers are not touched."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import config
from .workshop import CommandError, Workshop

CONTAINERS_CONF = """\
[containers]
# Without CAP_SYS_RESOURCE a start fails on the rlimits that podman sets by default.
default_ulimits = []
[network]
network_backend = "netavark"
network_config_dir = "{home}/networks"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
tmp_dir = "{run}/libpod"
"""


@dataclass(frozen=True)
class Podman:
    """The podman command with storage and configuration of its own below the cache folder."""

    workshop: Workshop

    @property
    def home(self) -> Path:
        """Folder of the configuration, the networks and the storage."""
        return self.workshop.root / "podman"

    @property
    def run_root(self) -> Path:
        """Folder of what lives only as long as the machine is up; one for each cache folder."""
        return Path("/run/gpunode") / self.home.as_posix().strip("/").replace("/", "-")

    def command(self, *words: str | Path) -> str:
        """Run podman and return its output.

        :raises CommandError: when it fails
        """
        conf = self.home / "containers.conf"
        text = CONTAINERS_CONF.format(home=self.home, run=self.run_root)
        if not conf.is_file() or conf.read_text() != text:
            (self.home / "networks").mkdir(parents=True, exist_ok=True)
            conf.write_text(text)
        storage = ("--root", self.home / "storage", "--runroot", self.run_root)
        return self.workshop.run(("podman", *storage, "--runtime", "runc", *words), env={"CONTAINERS_CONF": str(conf)})

    def ensure_network(self) -> None:
        """Make the nodes' network if it is not there."""
        try:
            self.command("network", "exists", config.NETWORK)
        except CommandError:
            # Names are not resolved by podman: a node uses the machine's own resolvers, as a VM would.
            self.command("network", "create", "--disable-dns", "--subnet", config.SUBNET, config.NETWORK)

    def inspect(self, name: str) -> dict[str, Any] | None:
        """What podman knows of a container; None when there is none of that name."""
        try:
            self.command("container", "exists", name)
        except CommandError:
            return None
        found: dict[str, Any] = json.loads(self.command("container", "inspect", name))[0]
        return found

    def remove(self, name: str) -> None:
        """Stop and remove a container; one that is not there is fine."""
        if self.inspect(name) is not None:
            self.command("rm", "--force", "--time", "10", name)
