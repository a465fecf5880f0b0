"""A user would lose: a simulated GPU whose tools and packages answer as the real ones do, and say that they are simulated."""

from __future__ import annotations

import os
import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from rehearsal import config, debs, device_plugin, simgpu
from rehearsal.simgpu import DriverVersion, nvml_unsupported
from rehearsal.workshop import RehearsalError, Workshop

FIXTURES = config.REPO / "tests" / "fixtures" / "nvidia-smi"
NEWEST_GLIBC = (2, 36)
"""Debian 12's: what is compiled here has to run on the node."""

NODES = {"nvidia0": "195 0", "nvidiactl": "195 255", "nvidia-uvm": "510 0"}

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="device nodes are made in a mount namespace: needs root")


@pytest.fixture(scope="session")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("log") / "log")


@pytest.fixture(scope="session")
def binaries(workshop: Workshop) -> Path:
    folder = simgpu.build_simgpu(workshop, debs.DRIVER)
    (folder / "libnvidia-ml.so.1").symlink_to("libnvidia-ml.so")
    (folder / "libcuda.so.1").symlink_to("libcuda.so")
    return folder


@dataclass(frozen=True)
class Machine:
    """A mount namespace that looks like a machine with the simulated driver.

    :param binaries: folder of the compiled parts
    :param module: version of the loaded kernel module, None for none
    :param nodes: device nodes that exist
    :param denied: whether the nodes may not be opened
    :param faults: text of the faults file
    :param ledger: processes that hold GPU memory: process id to "MiB name"
    """

    binaries: Path
    module: str | None = debs.DRIVER.driver
    nodes: tuple[str, ...] = tuple(NODES)
    denied: bool = False
    faults: str = ""
    ledger: Mapping[int, str] | None = None

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a shell command there, with the tools and libraries of the driver."""
        steps = [
            "mount --make-rprivate /",
            "mount -t tmpfs none /run",
            "mount -t tmpfs none /proc/driver",
            "mkdir /run/dev /run/nvidia-sim /run/nvidia-sim/ledger",
            *(f"mknod -m 666 /run/dev/{name} c {NODES[name]}" for name in self.nodes),
            "mknod -m 666 /run/dev/null c 1 3",
            "mount -t tmpfs none /dev" + (" -o nodev" if self.denied else ""),
            "cp -a /run/dev/. /dev/",
            f"printf '{self.faults}' > /run/nvidia-sim/faults",
        ]
        if self.module is not None:
            line = f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {self.module}  Release Build"
            steps += ["mkdir /proc/driver/nvidia", f"echo '{line}' > /proc/driver/nvidia/version"]
        hold = ""
        for pid, entry in (self.ledger or {}).items():
            steps.append(f"echo '{entry}' > /run/nvidia-sim/ledger/{pid}")
            hold += f"flock /run/nvidia-sim/ledger/{pid} "
        script = " && ".join(steps) + f" && exec {hold}sh -c {_quoted(command)}"
        environment = {**os.environ, "LD_LIBRARY_PATH": str(self.binaries), "PATH": f"{self.binaries}:{os.environ['PATH']}"}
        return subprocess.run(
            ["unshare", "--mount", "sh", "-ec", script], env=environment, capture_output=True, text=True, check=False, timeout=30
        )


def _quoted(command: str) -> str:
    return "'" + command.replace("'", "'\\''") + "'"


def _frame(line: str) -> str:
    """The skeleton of a table line: borders and column separators."""
    return re.sub(r"[^|+]", ".", line) if line.startswith("|") else line


@needs_root
def test_table_has_the_captured_frame(binaries: Path) -> None:
    done = Machine(binaries, ledger={773: "7258 VLLM::EngineCore", 1700: "14450 VLLM::EngineCore"}).run("nvidia-smi")
    real = (FIXTURES / "h200-580-two-engines.txt").read_text().splitlines()
    mine = done.stdout.splitlines()
    assert [_frame(line) for line in mine[1 : len(real)]] == [_frame(line) for line in real[1:]]
    # Headings and the process table are the same to the letter.
    assert mine[4:8] == real[4:8]
    assert mine[12:] == [*real[12:], mine[-1]]
    assert "SIMULATED" in mine[-1]


@needs_root
def test_xml_has_the_captured_elements(binaries: Path) -> None:
    done = Machine(binaries).run("nvidia-smi -q -x")
    assert "<!-- SIMULATED" in done.stdout

    def paths(element: ET.Element, prefix: str = "") -> set[str]:
        here = f"{prefix}/{element.tag}"
        return {here}.union(*(paths(child, here) for child in element))

    mine, real = ET.fromstring(done.stdout), ET.parse(FIXTURES / "h200-580-idle.xml").getroot()
    assert paths(mine) == paths(real)
    memory = mine.find("gpu/fb_memory_usage")
    assert memory is not None
    assert [part.text for part in memory] == ["23034 MiB", "475 MiB", "0 MiB", "22559 MiB"]


@needs_root
def test_query_gpu_in_csv(binaries: Path) -> None:
    query = "nvidia-smi --query-gpu=name,driver_version,memory.total,power.limit,compute_cap,mig.mode.current --format=csv"
    done = Machine(binaries).run(f"{query}; {query},noheader,nounits")
    header, units, plain = done.stdout.splitlines()
    assert header == "name, driver_version, memory.total [MiB], power.limit [W], compute_cap, mig.mode.current"
    assert units == "NVIDIA L4, 595.91.07, 23034 MiB, 72.00 W, 8.9, [N/A]"
    assert plain == "NVIDIA L4, 595.91.07, 23034, 72.00, 8.9, [N/A]"


@needs_root
def test_processes_count_while_their_lock_is_held(binaries: Path) -> None:
    query = "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv,noheader"
    assert Machine(binaries, ledger={42: "300 python3"}).run(query).stdout == "42, python3, 300 MiB\n"
    forgotten = Machine(binaries).run(f"echo '300 python3' > /run/nvidia-sim/ledger/42; {query}")
    assert forgotten.stdout == ""


@needs_root
@pytest.mark.parametrize(
    ("machine", "command", "code", "text"),
    [
        ({"nodes": (), "module": None}, "nvidia-smi", 9, "couldn't communicate with the NVIDIA driver"),
        ({"module": None}, "nvidia-smi", 9, "couldn't communicate with the NVIDIA driver"),
        ({"module": "595.71.05"}, "nvidia-smi", 18, "Driver/library version mismatch\nNVML library version: 595.91"),
        ({"denied": True}, "nvidia-smi", 255, "Failed to initialize NVML: Unknown Error"),
        ({"nodes": ("nvidiactl",)}, "nvidia-smi", 6, "No devices were found"),
        ({"nodes": ("nvidiactl",)}, "nvidia-smi -L", 6, "No devices found."),
        ({"faults": "lost"}, "nvidia-smi", 15, "GPU is lost.  Reboot the system to recover this GPU"),
        ({"faults": "no-permission"}, "nvidia-smi", 4, "Insufficient Permissions"),
        ({}, "nvidia-smi --unheard-of", 2, "Invalid combination of input arguments"),
        ({}, "nvidia-smi --query-gpu=soul --format=csv", 2, 'Field "soul" is not a valid field to query.'),
    ],
)
def test_failures_have_the_real_words_and_codes(
    binaries: Path, machine: dict[str, object], command: str, code: int, text: str
) -> None:
    done = Machine(binaries, **machine).run(command)  # type: ignore[arg-type]
    assert (done.returncode, text in done.stdout) == (code, True), done.stdout + done.stderr


def test_the_words_are_those_of_the_cases() -> None:
    cases = (FIXTURES / "R05-smi-failures.txt").read_text()
    source = (simgpu.SOURCES / "smi.c").read_text().replace('"\n             "', "")
    for words in (
        "couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.",
        "Failed to initialize NVML: Driver/library version mismatch",
        "No devices were found",
        "GPU is lost.  Reboot the system to recover this GPU",
    ):
        assert words in cases
        assert words in source


@needs_root
def test_persistence_mode_is_kept_and_seen(binaries: Path) -> None:
    done = Machine(binaries).run(
        "nvidia-smi -pm 1; nvidia-smi -pm 1; nvidia-smi --query-gpu=persistence_mode --format=csv,noheader"
    )
    assert "already Enabled" in done.stdout
    assert done.stdout.endswith("Enabled\n")


@needs_root
def test_cuda_sees_less_than_nvidia_smi(binaries: Path) -> None:
    code = (
        "import ctypes as c; u = c.CDLL('libcuda.so.1'); r = u.cuInit(0); n = c.c_int(); u.cuDeviceGetCount(c.byref(n));"
        "t = c.c_size_t(); u.cuDeviceTotalMem_v2(c.byref(t), 0); print(r, n.value, t.value >> 20)"
    )
    ask = f'python3 -c "{code}"'
    assert Machine(binaries).run(ask).stdout == "0 1 22559\n"
    assert Machine(binaries, nodes=("nvidiactl", "nvidia-uvm")).run(ask).stdout == "100 0 0\n"


def test_version_says_simulated(binaries: Path) -> None:
    environment = {**os.environ, "LD_LIBRARY_PATH": str(binaries)}
    done = subprocess.run([binaries / "nvidia-smi", "--version"], env=environment, capture_output=True, text=True, check=True)
    assert "NVIDIA-SMI version  : 595.91.07" in done.stdout
    assert "SIMULATED" in done.stdout


def test_every_nvml_function_exists(binaries: Path, workshop: Workshop) -> None:
    header = (simgpu.nvml_include(workshop) / "nvml.h").read_text()
    declared = set(re.findall(r"DECLDIR\s+(nvml\w+)\s*\(", header))
    symbols = subprocess.run(
        ["nm", "-D", "--defined-only", binaries / "libnvidia-ml.so"], capture_output=True, text=True, check=True
    )
    exported = {line.split()[2] for line in symbols.stdout.splitlines()}
    assert len(declared) > 300
    assert declared <= exported


def test_unsupported_functions_are_those_not_written() -> None:
    header = "nvmlReturn_t DECLDIR nvmlA(void);\nDEPRECATED(13.0) nvmlReturn_t  DECLDIR nvmlB(int x);\n"
    generated = nvml_unsupported(header, "nvmlReturn_t nvmlA(void)\n{\n")
    assert "nvmlB(void) { return 3; }" in generated
    assert "nvmlA" not in generated


def test_compiled_parts_run_on_debian_12(binaries: Path) -> None:
    for name in ("nvidia-smi", "nvidia-persistenced", "nvidia-modprobe", "libnvidia-ml.so", "libcuda.so"):
        listing = subprocess.run(["objdump", "-T", binaries / name], capture_output=True, text=True, check=True).stdout
        wanted = {tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_([0-9.]+)", listing)}
        assert max(version[:2] for version in wanted) <= NEWEST_GLIBC, name


def test_module_file_is_described(binaries: Path) -> None:
    text = (binaries / "nvidia.ko").read_bytes()
    for tag in (b"version=595.91.07\0", b"license=Dual MIT/GPL\0", b"alias=pci:v000010DEd*sv*sd*bc03sc02i00*\0", b"SIMULATED"):
        assert tag in text
    assert b"depends=nvidia\0" in (binaries / "nvidia-uvm.ko").read_bytes()


def _fields(deb: Path) -> dict[str, str]:
    text = subprocess.run(["dpkg-deb", "--field", deb], capture_output=True, text=True, check=True).stdout
    return dict(line.split(": ", 1) for line in text.strip().replace("\n ", " ").split("\n"))


def _dependencies(fields: Mapping[str, str]) -> list[tuple[str, str]]:
    """Name and exact version (or nothing) of each dependency."""
    wanted = []
    for word in fields.get("Depends", "").split(", "):
        match = re.fullmatch(r"(\S+)(?: \((\S+) (\S+)\))?", word)
        if match:
            wanted.append((match[1], match[3] if match[2] == "=" else ""))
    return wanted


@pytest.fixture(scope="session")
def driver_repo(workshop: Workshop) -> Path:
    return debs.build_driver_repo(workshop)


def test_driver_packages_have_the_real_names_and_say_what_they_are(driver_repo: Path) -> None:
    packages = {deb.name.split("_")[0]: _fields(deb) for deb in driver_repo.glob("*.deb")}
    assert {"nvidia-driver-cuda", "nvidia-kernel-open-dkms", "nvidia-persistenced", "libcuda1", "nvidia-open"} <= set(packages)
    for name, fields in packages.items():
        assert "stand-in" in fields["Description"], name
        assert "SIMULATED" in fields["Description"], name
        for dependency, version in _dependencies(fields):
            if "nvidia" in dependency or dependency == "libcuda1":
                assert packages[dependency]["Version"] == version, f"{name} needs {dependency} {version}"


def test_driver_repository_is_signed_by_the_key_beside_it(driver_repo: Path, tmp_path: Path) -> None:
    keyring = tmp_path / "key.gpg"
    subprocess.run(["gpg", "--homedir", tmp_path, "--dearmor", "-o", keyring, driver_repo / debs.CUDA_KEY], check=True)
    subprocess.run(["gpgv", "--keyring", keyring, driver_repo / "InRelease"], check=True, capture_output=True)


def test_several_driver_versions_in_one_repository(workshop: Workshop) -> None:
    repo = debs.build_driver_repo(workshop, (debs.DRIVER, DriverVersion("610.43.02", "13.3")))
    names = {deb.name for deb in repo.glob("*.deb")}
    assert {"nvidia-driver-cuda_595.91.07-1_amd64.deb", "nvidia-driver-cuda_610.43.02-1_amd64.deb"} <= names
    assert {"nvidia-driver-pinning-595_595-1_all.deb", "nvidia-driver-pinning-610_610-1_all.deb"} <= names


def test_toolkit_repository(workshop: Workshop, tmp_path: Path) -> None:
    for name in ("nvidia-container-runtime", "nvidia-ctk", "nvidia-cdi-hook", "nvidia-container-runtime-hook"):
        (tmp_path / name).write_text("binary")
    repo = debs.build_toolkit_repo(workshop, tmp_path)
    assert (repo / "gpgkey").read_text().startswith("-----BEGIN PGP PUBLIC KEY BLOCK-----")
    flat = repo / "stable/deb/amd64"
    packages = {deb.name.split("_")[0]: _fields(deb) for deb in flat.glob("*.deb")}
    assert set(packages) == {
        "libnvidia-container1",
        "libnvidia-container-tools",
        "nvidia-container-toolkit",
        "nvidia-container-toolkit-base",
    }
    assert {fields["Version"] for fields in packages.values()} == {debs.TOOLKIT_VERSION}
    base = next(flat.glob("nvidia-container-toolkit-base_*.deb"))
    listing = subprocess.run(["dpkg-deb", "--contents", base], capture_output=True, text=True, check=True).stdout
    assert "./usr/bin/nvidia-ctk" in listing
    assert "./lib/systemd/system/nvidia-cdi-refresh.service\n" in listing


def test_linked_libraries_are_found() -> None:
    listing = (
        "\tlinux-vdso.so.1 (0x00007f)\n"
        "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f)\n"
        "\t/lib64/ld-linux-x86-64.so.2 (0x00007f)\n"
    )
    assert [str(path) for path in device_plugin.libraries(listing)] == [
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib64/ld-linux-x86-64.so.2",
    ]
    with pytest.raises(RehearsalError, match="a library that this machine has not"):
        device_plugin.libraries("\tlibmusl.so => not found\n")


def test_proc_version_line_is_the_real_one() -> None:
    """The form of D08: "… Open Kernel Module for x86_64  <version>  Release Build  (…)"."""
    real = (FIXTURES / "D08-proc-version-open.txt").read_text().splitlines()[0]
    written = (simgpu.SOURCES / "kmod.c").read_text()
    before, after = real.split("515.57")
    assert before.removeprefix("NVRM version: NVIDIA UNIX ").strip() in written
    assert after.split("(")[0] in written
