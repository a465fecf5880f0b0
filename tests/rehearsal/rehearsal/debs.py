"""The publishers' apt repositories, as stand-ins: NVIDIA's driver (simulated) and NVIDIA's container toolkit (real binaries)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from . import config
from .aptrepo import Package, Payload, Release, build_repository, signing_key
from .simgpu import DriverVersion, build_simgpu
from .workshop import Workshop

DESCRIPTIONS = config.REHEARSAL / "debs"
TOOLKIT_MODULE = config.REHEARSAL / "go" / "nvidia-container-toolkit"

DRIVER = DriverVersion("595.91.07", "13.2")
TOOLKIT_VERSION = "1.20.2-1"

CUDA_KEY = "cuda-archive-keyring.asc"
"""Public key of the driver repository, in its folder."""

LIBRARIES = "/usr/lib/x86_64-linux-gnu"
_CODE = (Path(__file__), Path(__file__).with_name("aptrepo.py"))


def build_driver_repo(workshop: Workshop, versions: Iterable[DriverVersion] = (DRIVER,)) -> Path:
    """Make NVIDIA's CUDA repository for Debian 12, as far as a compute-only driver with open kernel modules goes.

    :param versions: driver releases that are offered
    :returns: artifact folder: a flat, signed apt repository with its public key in ``cuda-archive-keyring.asc``
    """
    key = signing_key(workshop, "cuda")
    parts = {version: build_simgpu(workshop, version) for version in versions}
    packages = [package for version, binaries in parts.items() for package in _driver_packages(version, binaries)]
    release = Release("NVIDIA", "SIMULATED CUDA repository (gpunode rehearsal)")

    def make(folder: Path) -> None:
        build_repository(workshop, folder, packages, release, key)
        (folder / CUDA_KEY).write_text(key.public)

    extra = [key.fingerprint, *(binaries.name for binaries in parts.values())]
    return workshop.artifact("repo-driver", make, sources=[DESCRIPTIONS / "driver", *_CODE], extra=extra)


def _driver_packages(version: DriverVersion, binaries: Path) -> list[Package]:
    values = {"VERSION": version.driver, "BRANCH": version.branch}
    payloads = _driver_payloads(version, binaries)
    return [Package(folder, values, payloads.get(folder.name, {})) for folder in sorted((DESCRIPTIONS / "driver").iterdir())]


def _driver_payloads(version: DriverVersion, binaries: Path) -> dict[str, dict[str, Payload]]:
    def library(name: str) -> dict[str, Payload]:
        file = f"{name}.{version.driver}"
        return {f"{LIBRARIES}/{file}": Payload(binaries / name), f"{LIBRARIES}/{name}.1": Payload(file)}

    def tool(name: str, mode: int = 0o755) -> dict[str, Payload]:
        return {f"/usr/bin/{name}": Payload(binaries / name, mode)}

    source = f"/usr/src/nvidia-{version.driver}"
    return {
        "libnvidia-ml1": library("libnvidia-ml.so"),
        "libcuda1": library("libcuda.so"),
        "nvidia-driver-cuda": tool("nvidia-smi"),
        "nvidia-persistenced": tool("nvidia-persistenced"),
        # Set-user-id as the real one: any user's first CUDA call may have to make the nodes.
        "nvidia-modprobe": tool("nvidia-modprobe", 0o4755),
        "nvidia-kernel-open-dkms": {f"{source}/{name}.ko": Payload(binaries / f"{name}.ko") for name in ("nvidia", "nvidia-uvm")},
    }


def build_toolkit_repo(workshop: Workshop, toolkit_bin: Path) -> Path:
    """Make NVIDIA's container toolkit repository: the real toolkit, and stand-ins for the C library that it does not use here.

    :param toolkit_bin: folder with the toolkit's binaries, built from its Go module
    :returns: artifact folder laid out as the publisher's site: ``gpgkey`` and the flat, signed repository in
        ``stable/deb/amd64/``
    """
    key = signing_key(workshop, "libnvidia-container")
    release = Release("https://github.com/NVIDIA/libnvidia-container", "gpunode rehearsal: toolkit built from its Go module")

    def make(folder: Path) -> None:
        flat = folder / "stable" / "deb" / "amd64"
        flat.mkdir(parents=True)
        build_repository(workshop, flat, _toolkit_packages(workshop, toolkit_bin), release, key)
        (folder / "gpgkey").write_text(key.public)

    sources = [DESCRIPTIONS / "toolkit", TOOLKIT_MODULE / "go.mod", *_CODE]
    return workshop.artifact("repo-toolkit", make, sources=sources, extra=(TOOLKIT_VERSION, key.fingerprint, toolkit_bin.name))


def _toolkit_packages(workshop: Workshop, toolkit_bin: Path) -> list[Package]:
    values = {"VERSION": TOOLKIT_VERSION}
    payloads = _toolkit_payloads(_toolkit_source(workshop), toolkit_bin)
    return [Package(folder, values, payloads.get(folder.name, {})) for folder in sorted((DESCRIPTIONS / "toolkit").iterdir())]


def _toolkit_source(workshop: Workshop) -> Path:
    """Folder of the toolkit's own source: its units are taken from there as they are."""
    name = "github.com/NVIDIA/nvidia-container-toolkit"
    workshop.run(("go", "mod", "download", name), cwd=TOOLKIT_MODULE)
    return Path(workshop.run(("go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", name), cwd=TOOLKIT_MODULE).strip())


def _toolkit_payloads(source: Path, binaries: Path) -> Mapping[str, Mapping[str, Payload]]:
    deployments = source / "deployments"
    units = deployments / "systemd"
    refresh = "nvidia-cdi-refresh"
    order = f"{refresh}.service.d/10-container-engines.conf"
    base = {
        f"/lib/systemd/system/{order}": Payload(units / Path(order).name),
        f"/etc/nvidia-container-toolkit/{refresh}.env": Payload(units / f"{refresh}.env"),
        f"/lib/udev/rules.d/99-{refresh}.rules": Payload(deployments / "udev" / f"99-{refresh}.rules"),
    }
    for name in ("nvidia-container-runtime", "nvidia-ctk", "nvidia-cdi-hook"):
        base[f"/usr/bin/{name}"] = Payload(binaries / name, 0o755)
    for name in (f"{refresh}.service", f"{refresh}.path"):
        base[f"/lib/systemd/system/{name}"] = Payload(units / name)
    hook = "nvidia-container-runtime-hook"
    return {
        "nvidia-container-toolkit-base": base,
        "nvidia-container-toolkit": {f"/usr/bin/{hook}": Payload(binaries / hook, 0o755)},
    }
