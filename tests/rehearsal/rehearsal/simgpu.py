"""The simulated GPU's C parts, compiled for one driver version."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from . import config
from .workshop import Workshop

SOURCES = config.REHEARSAL / "c"
PLUGIN = config.REHEARSAL / "go" / "device-plugin"
"""The Go module whose go.sum pins NVIDIA's NVML header (it is part of go-nvml)."""

GO_NVML = "github.com/NVIDIA/go-nvml"
WARNINGS = ("-Wall", "-Wextra", "-Werror", "-Wno-deprecated-declarations", "-Wno-unused-result")
CFLAGS = ("-std=c11", "-D_DEFAULT_SOURCE", "-O2", *WARNINGS)

_DECLARED = re.compile(r"nvmlReturn_t\s+DECLDIR\s+(nvml\w+)\s*\(")
_DEFINED = re.compile(r"^nvmlReturn_t (nvml\w+)\(", re.MULTILINE)
NVML_ERROR_NOT_SUPPORTED = 3


@dataclass(frozen=True)
class DriverVersion:
    """A driver release.

    :param driver: e.g. ``595.91.07``
    :param cuda: newest CUDA version that it serves, e.g. ``13.2``
    """

    driver: str
    cuda: str

    @property
    def branch(self) -> str:
        """The driver branch: ``595``."""
        return self.driver.split(".", 1)[0]

    @property
    def macros(self) -> tuple[str, ...]:
        """Compiler arguments that give the version to the C sources."""
        major, minor = self.cuda.split(".")
        return (f'-DDRIVER_VERSION="{self.driver}"', f"-DCUDA_MAJOR={major}", f"-DCUDA_MINOR={minor}")


@dataclass(frozen=True)
class KernelModule:
    """A kernel module file.

    :param file: name without ``.ko``
    :param depends: modules that are loaded before it
    :param alias: pattern of the devices that it drives
    """

    file: str
    depends: str = ""
    alias: str = ""

    @property
    def macros(self) -> tuple[str, ...]:
        """Compiler arguments that describe the module to module.c."""
        name = self.file.replace("-", "_")
        alias = (f'-DMODULE_ALIAS="{self.alias}"',) if self.alias else ()
        return (f'-DMODULE_NAME="{name}"', f'-DMODULE_DEPENDS="{self.depends}"', *alias)


MODULES = (KernelModule("nvidia", alias="pci:v000010DEd*sv*sd*bc03sc02i00*"), KernelModule("nvidia-uvm", depends="nvidia"))


def nvml_unsupported(header: str, source: str) -> str:
    """C source of every NVML function that the header declares and the source does not define: each says "not supported".

    A program that looks up a function it does not need must find it: a missing symbol ends the process.

    :param header: text of ``nvml.h``
    :param source: text of ``nvml.c``
    """
    missing = sorted(set(_DECLARED.findall(header)) - set(_DEFINED.findall(source)))
    lines = [f"int {name}(void) {{ return {NVML_ERROR_NOT_SUPPORTED}; }}" for name in missing]
    return "\n".join(["/* Generated from nvml.h: what the simulated GPU does not do. */", *lines, ""])


def nvml_include(workshop: Workshop) -> Path:
    """Folder of ``nvml.h``, from the Go module cache (fetched and checked against go.sum when absent)."""
    workshop.run(("go", "mod", "download", GO_NVML), cwd=PLUGIN)
    folder = workshop.run(("go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", GO_NVML), cwd=PLUGIN)
    return Path(folder.strip()) / "pkg" / "nvml"


def build_simgpu(workshop: Workshop, version: DriverVersion) -> Path:
    """Compile libraries, tools and module files of the simulated driver.

    :returns: artifact folder with ``libnvidia-ml.so``, ``libcuda.so``, ``nvidia-smi``, ``nvidia-persistenced``,
        ``nvidia-modprobe``, ``nvidia.ko`` and ``nvidia-uvm.ko``
    """
    sources = [SOURCES, PLUGIN / "go.mod", Path(__file__)]
    name = f"simgpu-{version.driver}"
    return workshop.artifact(name, lambda folder: _compile(workshop, version, folder), sources=sources, extra=version.macros)


def _compile(workshop: Workshop, version: DriverVersion, folder: Path) -> None:
    include = nvml_include(workshop)
    generated = folder / "nvml_unsupported.c"
    generated.write_text(nvml_unsupported((include / "nvml.h").read_text(), (SOURCES / "nvml.c").read_text()))
    common = (*CFLAGS, *version.macros, f"-I{include}", f"-I{SOURCES}")
    gpu = SOURCES / "gpu.c"

    def compile_to(target: str, *arguments: str | Path) -> None:
        workshop.run(("gcc", *common, "-o", folder / target, *arguments))

    shared = ("-shared", "-fPIC")
    compile_to("libnvidia-ml.so", *shared, "-Wl,-soname,libnvidia-ml.so.1", SOURCES / "nvml.c", gpu, generated)
    compile_to("libcuda.so", *shared, "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1", SOURCES / "cuda.c", gpu)
    compile_to("nvidia-smi", SOURCES / "smi.c", "-ldl")
    compile_to("nvidia-persistenced", SOURCES / "persistenced.c", gpu)
    compile_to("nvidia-modprobe", SOURCES / "nvidia_modprobe.c")
    for module in MODULES:
        compile_to(f"{module.file}.ko", "-c", *module.macros, SOURCES / "module.c")
    generated.unlink()
