"""A disposable node: a container that boots systemd from a plain folder and is reached over SSH.

The root is a folder on the machine's own file system, not an image: containerd's overlay works in it without further
volumes, and a prepared node is kept by copying one folder.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from . import config
from .config import NodeSpec
from .podman import Podman
from .workshop import CommandError, RehearsalError, Workshop

BOOT_SECONDS = 60
TEMPORARY = ("run", "tmp")


@dataclass(frozen=True)
class Node:
    """One node and its folders.

    :param spec: name and address
    """

    workshop: Workshop
    podman: Podman
    spec: NodeSpec

    @property
    def home(self) -> Path:
        """Folder of all that belongs to this node."""
        return self.workshop.root / "nodes" / self.spec.name

    @property
    def root(self) -> Path:
        """The node's root file system."""
        return self.home / "root"

    @property
    def key(self) -> Path:
        """Private key of the node's user."""
        return self.workshop.root / "ssh" / "id_ed25519"

    @property
    def known_hosts(self) -> Path:
        """The node's host keys, read from its disk: no first connection is trusted blindly."""
        return self.home / "known_hosts"

    def exists(self) -> bool:
        """Whether the container exists, running or not."""
        return self.podman.inspect(self.spec.name) is not None

    def running(self) -> bool:
        """Whether the container is running."""
        found = self.podman.inspect(self.spec.name)
        return bool(found and found["State"]["Running"])

    def create(self, source: Path) -> None:
        """Lay the node's root down from a folder (a bare root, or a prepared node's), replacing what is there."""
        self.destroy()
        self.home.mkdir(parents=True)
        self.workshop.run(("cp", "--archive", "--reflink=auto", source, self.root))
        for name in TEMPORARY:
            shutil.rmtree(self.root / name, ignore_errors=True)
            (self.root / name).mkdir(mode=0o755 if name == "run" else 0o1777)
        (self.root / "etc/hostname").write_text(f"{self.spec.name}\n")
        if not list((self.root / "etc/ssh").glob("ssh_host_*_key")):
            self.workshop.run(("ssh-keygen", "-A", "-f", self.root))
        self._authorize()

    def _authorize(self) -> None:
        if not self.key.is_file():
            self.key.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self.workshop.run(("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpunode-rehearsal", "-f", self.key))
        folder = self.root / "home" / config.SSH_USER / ".ssh"
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / "authorized_keys").write_text(self.key.with_suffix(".pub").read_text())
        owner = folder.parent.stat()
        for path in (folder, folder / "authorized_keys"):
            os.chown(path, owner.st_uid, owner.st_gid)
        lines = [
            f"{self.spec.address} {' '.join(key.read_text().split()[:2])}\n"
            for key in sorted((self.root / "etc/ssh").glob("ssh_host_*_key.pub"))
        ]
        self.known_hosts.write_text("".join(lines))

    def start(self, mirror: Path | None) -> None:
        """Boot the node and wait until it takes commands over SSH.

        :param mirror: folder shown on the node as ``/srv/mirror``, read-only
        :raises RehearsalError: when it is not reachable in time, with the end of its journal
        """
        self.podman.ensure_network()
        self.podman.remove(self.spec.name)
        mounts = [f"{config.CA_BUNDLE}:{config.CA_BUNDLE}:ro"]
        if mirror is not None:
            mounts.append(f"{mirror}:/srv/mirror:ro")
        self.podman.command(
            "run",
            "--detach",
            f"--name={self.spec.name}",
            f"--hostname={self.spec.name}",
            f"--network={config.NETWORK}",
            f"--ip={self.spec.address}",
            "--privileged",
            "--systemd=always",
            "--cgroupns=private",
            "--pids-limit=-1",
            # ansible.builtin.reboot ends PID 1; a machine comes back by itself.
            "--restart=always",
            "--stop-timeout=20",
            "--tmpfs=/run:rw,mode=755",
            "--tmpfs=/tmp:rw,mode=1777",
            *(f"--volume={mount}" for mount in mounts),
            "--rootfs",
            self.root,
            *init_command(),
        )
        self.wait_for_ssh()

    def wait_for_ssh(self) -> None:
        """Wait until systemd is up and a command runs over SSH."""
        deadline = time.monotonic() + BOOT_SECONDS
        seen = "nothing yet"
        while time.monotonic() < deadline:
            done = self.ssh("systemctl is-system-running --wait || true", check=False)
            seen = (done.stdout or done.stderr).strip()
            if done.returncode == 0 and done.stdout.strip() in {"running", "degraded"}:
                return
            time.sleep(0.5)
        journal = self.journal()
        raise RehearsalError(
            f"node {self.spec.name} ({self.spec.address}) was not reachable over SSH within {BOOT_SECONDS} s; "
            f"last answer: {seen}\n{journal}\nThe full log is {self.workshop.log_path}"
        )

    def ssh(self, command: str, *, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a shell command on the node as its user."""
        done = subprocess.run(
            [*self.ssh_command(), command], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
        )
        if check and done.returncode != 0:
            raise CommandError(["ssh", self.spec.name, command], done.returncode, (done.stderr or done.stdout)[-2000:])
        return done

    def ssh_command(self) -> list[str]:
        """The ssh command line that reaches the node."""
        return [
            "ssh",
            "-i",
            str(self.key),
            "-o",
            f"UserKnownHostsFile={self.known_hosts}",
            "-o",
            "StrictHostKeyChecking=yes",
            "-o",
            "ConnectTimeout=5",
            "-o",
            "LogLevel=ERROR",
            f"{config.SSH_USER}@{self.spec.address}",
        ]

    def journal(self, lines: int = 40) -> str:
        """The end of the node's journal, by whatever way still works."""
        try:
            return self.podman.command("exec", self.spec.name, "journalctl", "--no-pager", "-n", str(lines))
        except CommandError as error:
            return f"(its journal cannot be read: {error.tail})"

    def stop(self) -> None:
        """Shut the node down and keep its disk."""
        self.podman.remove(self.spec.name)

    def destroy(self) -> None:
        """Remove the node and its disk."""
        self.podman.remove(self.spec.name)
        shutil.rmtree(self.home, ignore_errors=False) if self.home.exists() else None


def init_command(cgroup: Path = Path("/sys/fs/cgroup")) -> tuple[str, ...]:
    """The container's first command.

    A VM's mounts are shared, which kubelet relies on for volumes; systemd leaves that to the container's maker. On cgroup v1
    podman mounts the host's root of systemd's hierarchy into the container, where two nodes would share unit cgroups; systemd
    makes a private mount of its own once that one is gone. On cgroup v2 there is one private tree.
    """
    steps = ["mount --make-rshared /"]
    if not (cgroup / "cgroup.controllers").is_file():
        steps.append("umount -l /sys/fs/cgroup/systemd")
    return ("sh", "-c", "; ".join([*steps, "exec /sbin/init"]))
