"""Placeholders for CUDA libraries: what they define is what torch asks for."""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest
from rehearsal.cuda_placeholders import SONAME_BY_PREFIX, install_placeholders, missing_libraries, placeholder_source
from rehearsal.workshop import RehearsalError, Workshop

NM = """
libtorch_cuda.so:
                 U cublasCreate_v2@libcublas.so.13
                 U cublasLtCreate@libcublasLt.so.13
                 U malloc@GLIBC_2.2.5
                 U ncclAllReduce
                 w __cxa_finalize@GLIBC_2.2.5

libtorch_python.so:
                 U cublasCreate_v2@libcublas.so.13
"""


def test_symbols_are_sorted_by_library() -> None:
    libraries = missing_libraries(NM)
    assert set(libraries) == set(SONAME_BY_PREFIX.values())
    assert libraries["libcublas.so.13"].symbols == {"cublasCreate_v2"}
    assert libraries["libcublas.so.13"].versions == {"libcublas.so.13"}
    assert libraries["libcublasLt.so.13"].symbols == {"cublasLtCreate"}
    assert libraries["libnccl.so.2"].symbols == {"ncclAllReduce"}
    assert libraries["libnccl.so.2"].versions == set()
    assert libraries["libcurand.so.10"].symbols == set()


def test_source_names_the_library_that_is_missing() -> None:
    source = placeholder_source("libnccl.so.2", ["ncclB", "ncclA"])
    assert "libnccl.so.2 is a placeholder" in source
    assert source.index("ncclA") < source.index("ncclB")


def test_a_program_that_asks_finds_all(tmp_path: Path) -> None:
    asking = tmp_path / "asking.c"
    asking.write_text("void ncclAllReduce(void); void cufftExec(void); void ask(void) { ncclAllReduce(); cufftExec(); }\n")
    lib = tmp_path / "lib"
    lib.mkdir()
    target = lib / "libasking.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", target, asking, "-Wl,-rpath,$ORIGIN"], check=True)
    install_placeholders(Workshop(tmp_path, tmp_path / "log"), lib, tmp_path)
    for soname in ("libnccl.so.2", "libcufft.so.12"):
        ctypes.CDLL(str(lib / soname), mode=ctypes.RTLD_GLOBAL)
    assert ctypes.CDLL(str(target)).ask


def test_two_versions_of_one_library_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Workshop, "run", lambda *_args, **_kwargs: "  U cufftA@one\n  U cufftB@two\n")
    with pytest.raises(RehearsalError, match=r"placeholder for libcufft\.so\.12: torch asks for .*'one', 'two'"):
        install_placeholders(Workshop(tmp_path, tmp_path / "log"), tmp_path, tmp_path)
