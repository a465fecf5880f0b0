"""The third-party Go programs of the rehearsal node, built from modules that go.sum locks by hash.

Each part is a folder below ``tests/rehearsal/go`` with a go.mod, a go.sum and, where upstream's own commands do not fit,
a main.go. Upstream versions are written in go.mod and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from . import gobuild
from .config import K3S_VERSION, REHEARSAL
from .workshop import CommandError, RehearsalError, Workshop, digest

GO_MODULES = REHEARSAL / "go"


@dataclass(frozen=True)
class GoPart:
    """Programs that are built from one Go module.

    :param name: artifact name without its ``part-`` prefix
    :param upstream: path of the upstream module; its version in go.mod is the part's version
    :param commands: file name in the artifact -> Go package that it is built from
    :param links: file name in the artifact -> command that it is a symbolic link to
    :param variables: string variable set by the linker -> value, where ``{version}`` is the part's version
    :param tags: build tags
    :param cgo: whether C code is linked; without it every program is static
    :param extldflags: flags of the C linker, with ``cgo`` only
    :param needs: C headers and libraries, as Debian packages, that an error should name
    """

    name: str
    upstream: str
    commands: Mapping[str, str]
    links: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    tags: Sequence[str] = ()
    cgo: bool = False
    extldflags: Sequence[str] = ()
    needs: Sequence[str] = ()

    @property
    def module(self) -> Path:
        """Folder with the part's go.mod."""
        return GO_MODULES / self.name

    @property
    def files(self) -> list[str]:
        """Names of everything in the artifact."""
        return sorted([*self.commands, *self.links])


_CONTAINERD = "github.com/containerd/containerd/v2"
_CNI = "github.com/containernetworking/plugins"
_KUBE_ROUTER = "github.com/cloudnativelabs/kube-router/v2"
_TOOLKIT = "github.com/NVIDIA/nvidia-container-toolkit"


def _toolkit_commands() -> dict[str, str]:
    names = (
        "nvidia-cdi-hook",
        "nvidia-container-runtime",
        "nvidia-container-runtime-hook",
        "nvidia-container-runtime.cdi",
        "nvidia-container-runtime.legacy",
        "nvidia-ctk",
    )
    return {name: f"{_TOOLKIT}/cmd/{name}" for name in names}


def _kubernetes_variables(version: str) -> dict[str, str]:
    """Version variables of Kubernetes' two copies of the same package, for a version like ``v1.36.2+k3s1``."""
    major, minor, _ = version.removeprefix("v").split(".", 2)
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return {f"{package}.{name}": value for package in packages for name, value in values.items()}


PARTS: tuple[GoPart, ...] = (
    GoPart(
        name="containerd",
        upstream=_CONTAINERD,
        commands={name: f"{_CONTAINERD}/cmd/{name}" for name in ("containerd", "containerd-shim-runc-v2", "ctr")},
        variables={f"{_CONTAINERD}/version.Version": "v{version}"},
        # The snapshotters that need C libraries or a spare disk; a node uses overlayfs or native.
        tags=("no_btrfs", "no_devmapper", "no_zfs"),
    ),
    GoPart(
        name="etcd",
        upstream="go.etcd.io/etcd/server/v3",
        commands={
            "etcd": "go.etcd.io/etcd/server/v3",
            "etcdctl": "go.etcd.io/etcd/etcdctl/v3",
            "etcdutl": "go.etcd.io/etcd/etcdutl/v3",
        },
    ),
    GoPart(
        name="nvidia-container-toolkit",
        upstream=_TOOLKIT,
        commands=_toolkit_commands(),
        variables={f"{_TOOLKIT}/internal/info.version": "{version}"},
        cgo=True,
        # libnvidia-ml.so.1 is opened at run time, from wherever the driver put it: its symbols stay open and lazy.
        extldflags=("-Wl,--export-dynamic", "-Wl,--unresolved-symbols=ignore-in-object-files", "-Wl,-z,lazy"),
    ),
    GoPart(
        name="runc",
        upstream="github.com/opencontainers/runc",
        commands={"runc": "github.com/opencontainers/runc"},
        tags=("seccomp", "netgo", "osusergo"),
        cgo=True,
        extldflags=("-static",),
        needs=("libseccomp-dev", "pkg-config"),
    ),
    GoPart(
        name="cni",
        upstream=_CNI,
        commands={
            "bridge": f"{_CNI}/plugins/main/bridge",
            "host-local": f"{_CNI}/plugins/ipam/host-local",
            "loopback": f"{_CNI}/plugins/main/loopback",
            "portmap": f"{_CNI}/plugins/meta/portmap",
        },
        variables={f"{_CNI}/pkg/utils/buildversion.BuildVersion": "v{version}"},
    ),
    GoPart(
        name="cri-tools",
        upstream="sigs.k8s.io/cri-tools",
        commands={"crictl": "sigs.k8s.io/cri-tools/cmd/crictl"},
        variables={"sigs.k8s.io/cri-tools/pkg/version.Version": "{version}"},
    ),
    GoPart(
        name="kube-router",
        upstream=_KUBE_ROUTER,
        commands={"kube-router": f"{_KUBE_ROUTER}/cmd/kube-router"},
        variables={f"{_KUBE_ROUTER}/pkg/version.Version": "v{version}"},
    ),
    GoPart(
        name="coredns",
        upstream="github.com/coredns/coredns",
        commands={"coredns": "."},
    ),
    GoPart(
        name="kubernetes",
        upstream="k8s.io/kubernetes",
        commands={"kubernetes": "."},
        links=dict.fromkeys(
            ("kube-apiserver", "kube-controller-manager", "kube-proxy", "kube-scheduler", "kubectl", "kubelet"), "kubernetes"
        ),
        variables=_kubernetes_variables(K3S_VERSION),
    ),
)
"""Every part, the quick ones first."""


def find_part(name: str) -> GoPart:
    """Look a part up by its name.

    :raises RehearsalError: when there is none, with the names there are
    """
    for part in PARTS:
        if part.name == name:
            return part
    raise RehearsalError(f"there is no Go part {name!r}; there are: {', '.join(part.name for part in PARTS)}")


def required_version(go_mod: str, module: str) -> str | None:
    """Version at which the text of a go.mod requires a module, e.g. ``v2.3.7``; None when it does not."""
    for line in go_mod.splitlines():
        words = line.split("//")[0].removeprefix("require ").split()
        if len(words) == 2 and words[0] == module and words[1].startswith("v"):
            return words[1]
    return None


def part_version(part: GoPart) -> str:
    """Upstream version of a part, without its ``v``.

    :raises RehearsalError: when go.mod cannot be read or does not require the part's upstream module
    """
    path = part.module / "go.mod"
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise RehearsalError(f"cannot read {path}: {error.strerror}; part {part.name} is not in this checkout") from error
    version = required_version(text, part.upstream)
    if version is None:
        raise RehearsalError(
            f"{path} does not require {part.upstream}, which part {part.name} is built from; add it and run go mod tidy"
        )
    return version.removeprefix("v")


def build_arguments(part: GoPart, package: str, output: Path) -> list[str]:
    """The ``go build`` command of one program, to be run in the part's module folder."""
    version = part_version(part)
    linker = [f"-X={variable}={value.format(version=version)}" for variable, value in part.variables.items()]
    if part.extldflags:
        linker.append(f"'-extldflags={' '.join(part.extldflags)}'")
    return gobuild.build_arguments(package, output, linker=linker, tags=part.tags)


def _build_error(part: GoPart, command: str, package: str, error: CommandError) -> RehearsalError:
    remedy = f"check {package} against {part.module / 'go.mod'} (go mod tidy there repairs go.sum)"
    if part.needs:
        remedy += f", and that these Debian packages are installed: {', '.join(part.needs)}"
    return RehearsalError(
        f"cannot build {command} of part {part.name} from {package}: go build ended with code {error.code};"
        f" {remedy}\n{error.tail}"
    )


def _build_into(workshop: Workshop, part: GoPart, folder: Path) -> None:
    for command, package in part.commands.items():
        try:
            workshop.run(build_arguments(part, package, folder / command), cwd=part.module, env=gobuild.environment(cgo=part.cgo))
        except CommandError as error:
            raise _build_error(part, command, package, error) from error
        if not (folder / command).is_file():
            raise RehearsalError(
                f"go build of {package} in {part.module} ended well but left no program {command} of part {part.name};"
                " is it a main package?"
            )
    for link, target in part.links.items():
        (folder / link).symlink_to(target)


def go_version(workshop: Workshop) -> str:
    """Version of the Go toolchain that builds the parts, e.g. ``go1.26.8 linux/amd64``."""
    return workshop.run(["go", "env", "GOVERSION", "GOARCH"], cwd=GO_MODULES).replace("\n", " ").strip()


def _key(workshop: Workshop, part: GoPart) -> tuple[list[Path], list[str]]:
    """Sources and strings that decide whether a part is built again."""
    return [part.module], [repr(part), gobuild.KEY, go_version(workshop)]


def fetch_all(workshop: Workshop) -> None:
    """Download the modules of every part that is yet to be built, so that no compiler waits for the network.

    Meant to run beside the builds. What cannot be fetched is left to the build, which says why.
    """
    for part in PARTS:
        sources, extra = _key(workshop, part)
        if (workshop.root / "artifacts" / f"part-{part.name}-{digest(sources, extra)}").is_dir():
            continue
        tags = [f"-tags={','.join(part.tags)}"] if part.tags else []
        argv = ["go", "list", "-deps", '-f={{""}}', *tags, *part.commands.values()]
        with suppress(CommandError):
            workshop.run(argv, cwd=part.module, env=gobuild.environment(cgo=part.cgo))


def build_part(workshop: Workshop, name: str) -> Path:
    """Build one part, unless the same sources were built by the same Go before.

    :returns: the artifact folder; it has the part's programs (and links to them) and nothing else
    :raises RehearsalError: when the part is not known or does not build
    """
    part = find_part(name)
    sources, extra = _key(workshop, part)
    return workshop.artifact(
        f"part-{part.name}", lambda folder: _build_into(workshop, part, folder), sources=sources, extra=extra
    )
