"""CUDA sources: NVIDIA's compiler, the headers beside a source, the CUDA runtime."""

from __future__ import annotations

import numpy as np
import pytest

import packer
import runtime
from packer.toolchain.compiler import find_compiler
from runtime.error import ToolchainError

from ...support import needs
from ..compilers import output_of

SOURCE = """
#include "value.h"
__global__ void fill(float *p) { *p = VALUE; }
extern "C" int launch(float *p) { fill<<<1, 1>>>(p); return (int)cudaGetLastError(); }
"""
FUNCTIONS = {"launch": "int(float *p)"}


@pytest.fixture
def nvcc(monkeypatch):
    """Name NVIDIA's compiler, wherever it is."""
    monkeypatch.setenv("NVCC", needs.cuda_tool("nvcc"))


def cuda_module(folder):
    """Write a source with a header beside it."""
    folder.mkdir()
    (folder / "value.h").write_text("#define VALUE 1.0f\n")
    (folder / "fill.cu").write_text(SOURCE)
    return packer.CSourceModule(folder / "fill.cu", functions=FUNCTIONS)


@pytest.mark.usefixtures("nvcc")
def test_library_of_a_cuda_source_loads_without_other_libraries(tmp_path):
    """The CUDA runtime is linked statically; it exports no symbols and finds the driver itself."""
    path = packer.export_library(cuda_module(tmp_path / "source"), tmp_path / "fill.so")
    assert "cudart" not in output_of("readelf", "-dW", path)
    assert " cuda" not in output_of("nm", "-D", "--defined-only", path)
    result = runtime.load(path)["launch"](np.zeros(1, np.float32))
    assert isinstance(result, int)  # 0, or an error of cudaError_t where there is no device


@pytest.mark.usefixtures("nvcc")
def test_same_cuda_source_gives_the_same_bytes(tmp_path):
    """The folder of the source and the process are not part of the library."""
    made = [
        packer.export_library(cuda_module(tmp_path / name), tmp_path / f"{name}.so").read_bytes()
        for name in ("a", "b")
    ]
    assert made[0] == made[1]


@pytest.mark.usefixtures("nvcc")
@pytest.mark.parametrize("name", ["two words", "a,b", "it's", '"q"', "back\\slash", "$HOME(x)"])
def test_folder_of_quoted_includes_may_have_any_name(tmp_path, name):
    """Nvcc splits words at commas, and gives them to a shell."""
    packer.export_library(cuda_module(tmp_path / name), tmp_path / "fill.o")


@pytest.mark.usefixtures("nvcc")
def test_tar_of_a_cuda_source_contains_the_runtime(tmp_path):
    """It is linked on a machine that has no CUDA toolkit."""
    tar = packer.export_library(cuda_module(tmp_path / "source"), tmp_path / "fill.tar")
    linked = packer.link_library([tar], tmp_path / "fill.so")
    assert isinstance(runtime.load(linked)["launch"](np.zeros(1, np.float32)), int)


@pytest.mark.usefixtures("nvcc")
def test_options_of_the_host_compiler_are_accepted(tmp_path):
    """As for C and C++ sources."""
    source = 'extern "C" int one(void) { return ONE; }'
    options = ["-Wall", "-Wextra", "-fno-math-errno", "-DONE=1"]
    module = packer.CSourceModule(source, fmt="cu", functions={"one": "int(void)"}, options=options)
    assert runtime.load(packer.export_library(module, tmp_path / "one.so"))["one"]() == 1


def test_missing_cuda_runtime_is_named(tmp_path, monkeypatch):
    """A compiler without the static runtime is an error before the link."""
    fake = tmp_path / "nvcc"
    fake.write_text(
        "#!/bin/sh\n"
        f"""case $* in *--dryrun*) echo '#$ LIBRARIES=  "-L{tmp_path}/lib"'; exit ;; esac\n"""
        "while [ $# -gt 0 ]; do case $1 in -o) out=$2 ;; esac; shift; done\n"
        "echo 'int launch(float *p) { return 0; }' | cc -fPIC -x c -c - -o $out\n"
    )
    fake.chmod(0o755)
    monkeypatch.setenv("NVCC", str(fake))
    missing = f"libcudart_static.a is not in {tmp_path}/lib; install the CUDA toolkit"
    with pytest.raises(ToolchainError, match=missing):
        packer.export_library(cuda_module(tmp_path / "source"), tmp_path / "fill.so")


def test_compiler_of_a_package_is_found(tmp_path, monkeypatch):
    """Nvcc of PyPI's package, which is not on PATH, is found without a variable."""
    path = tmp_path / "nvidia/cu13/bin/nvcc"
    path.parent.mkdir(parents=True)
    path.touch()
    monkeypatch.delenv("NVCC", raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert find_compiler("cu") == (str(path),)
