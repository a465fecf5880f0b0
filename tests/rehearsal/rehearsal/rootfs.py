"""The bare machine: a Debian 12 root as a cloud image would bring it, with the rehearsal's hardware and its mirror."""

from __future__ import annotations

from pathlib import Path

from . import config
from .hardware import SOURCE_FILES, install_hardware
from .workshop import Workshop

SUITE = "bookworm"
PACKAGES = (
    "systemd,systemd-sysv,dbus,udev,openssh-server,sudo,python3,python3-apt,iproute2,iptables,ipset,conntrack,kmod,procps,"
    "ca-certificates,gpg,gpg-agent,less"
)

MIRROR_UNIT = f"""\
[Unit]
Description=Rehearsal: publishers' download sites, served on this machine's loopback
After=network.target

[Service]
ExecStart=/usr/bin/python3 -m http.server --bind 127.0.0.1 --directory /srv/mirror {config.MIRROR_PORT}
DynamicUser=yes
Restart=on-failure

[Install]
WantedBy=multi-user.target
"""

SSHD_CONF = """\
PasswordAuthentication no
PermitRootLogin no
UseDNS no
"""


def build_rootfs(workshop: Workshop) -> Path:
    """Make the root file system of a bare machine.

    :returns: artifact folder; the tree is in ``root/``
    """
    extra = (SUITE, PACKAGES, MIRROR_UNIT, SSHD_CONF, config.SSH_USER)
    return workshop.artifact("rootfs", lambda folder: _make(workshop, folder / "root"), sources=SOURCE_FILES, extra=extra)


def _make(workshop: Workshop, root: Path) -> None:
    workshop.run(
        (
            # A mount namespace of its own: a build that is killed leaves no mounts below the cache.
            "unshare",
            "--mount",
            "mmdebstrap",
            "--mode=root",
            "--variant=minbase",
            # What a container has no use for, and what would be fetched for every package once more.
            "--dpkgopt=path-exclude=/usr/share/man/*",
            "--dpkgopt=path-exclude=/usr/share/doc/*",
            '--aptopt=APT::Install-Recommends "false"',
            f"--include={PACKAGES}",
            SUITE,
            root,
        )
    )
    _write(root / "etc/systemd/system/mirror.service", MIRROR_UNIT)
    _write(root / "etc/ssh/sshd_config.d/10-machine.conf", SSHD_CONF)
    _write(root / f"etc/sudoers.d/{config.SSH_USER}", f"{config.SSH_USER} ALL=(ALL) NOPASSWD: ALL\n", mode=0o440)
    workshop.run(("chroot", root, "useradd", "--create-home", "--shell", "/bin/bash", config.SSH_USER))
    # Device units of the machine below are of no concern to a node; a udev of its own would fight it over /dev.
    workshop.run(("chroot", root, "systemctl", "mask", "systemd-udevd.service", "systemd-udev-trigger.service"))
    workshop.run(("chroot", root, "systemctl", "enable", "mirror.service", "ssh.service"))
    install_hardware(workshop, root)
    (root / "srv/mirror").mkdir(parents=True, exist_ok=True)
    (root / "etc/machine-id").write_text("")
    for key in (root / "etc/ssh").glob("ssh_host_*"):
        key.unlink()


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
