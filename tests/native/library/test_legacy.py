"""Libraries of TVM to 2025: packed C functions, its context symbols, trees of each generation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import runtime

from ...support import needs
from ...support.compile import compile_c
from ...support.dso_script import run_by_c, run_by_python_alone, tensor
from ...support.paths import C_SOURCES

SOURCE = (C_SOURCES / "legacy.c").read_text()
# Blobs that TVM wrote: to 2019 without a tree, to 2021 in import order, since then sorted.
GENERATIONS = {
    "j_gen0_c_cuda_opencl": ["cuda", "opencl"],
    "j4_gen1_c_cuda_opencl": ["cuda", "opencl"],
    "c_c_cuda_opencl": ["opencl", "cuda"],
}
LoadLegacy = Callable[..., runtime.Module]


def compile_legacy(folder: Path, blob: bytes, *options: str) -> Path:
    """Compile legacy.c with a blob."""
    data = len(blob).to_bytes(8, "little") + blob
    text = ",".join(map(str, data))
    source = f"{SOURCE}\nconst unsigned char __tvm_dev_mblob[{len(data)}] = {{{text}}};\n"
    return compile_c(source, folder / "legacy.so", *options)


@pytest.fixture
def load_legacy(tmp_path: Path) -> LoadLegacy:
    """``load_legacy(blob, *options)``: legacy.c with a blob, as TVM's dev.cc has it."""

    def load_legacy(blob: bytes, *options: str) -> runtime.Module:
        return runtime.load(compile_legacy(tmp_path, blob, *options))

    return load_legacy


@pytest.fixture(params=GENERATIONS)
def generation(request: pytest.FixtureRequest) -> str:
    """The name of a golden blob."""
    name: str = request.param
    return name


@pytest.fixture(params=[(), ("-DUNDEFINED",)], ids=["llvm", "c"])
def library(
    request: pytest.FixtureRequest, load_legacy: LoadLegacy, generation: str, golden_dir: Path
) -> runtime.Module:
    """A library of one generation, from either code generator."""
    return load_legacy((golden_dir / f"{generation}.bin").read_bytes(), *request.param)


def test_tree_is_that_of_its_generation(library, generation) -> None:
    """The library is the root; its imports are in the order in which they were written."""
    assert [m.type_key for m in library.imported_modules] == GENERATIONS[generation]
    assert library.entry_name == "smooth"


def test_workspace_and_threads_serve_packed_functions(library) -> None:
    """The entry is found by name, and by ``__tvm_main__``."""
    x, y = np.arange(1000, dtype="float32"), np.zeros(1000, "float32")
    expected = (x + np.append(x[1:], 0).astype("float32"))[::-1]
    for function in (library["smooth"], library):
        y[:] = 0
        function(x, y)
        np.testing.assert_array_equal(expected, y)


def test_last_error_arrives(library) -> None:
    """The exception class is the kind at the start of the message."""
    with pytest.raises(ValueError, match="smooth: two lengths"):
        library["smooth"](np.zeros(3, "float32"), np.zeros(4, "float32"))


def test_functions_are_found_from_host_code(library, register_func) -> None:
    """A global function precedes an import; an import that precedes it is used first."""
    register_func("answer", lambda x: x + 0.25)
    assert library["ask"](1.5) == 3.5

    class Answers(runtime.Module):
        """An import with one function."""

        type_key = "answers"

        def find_function(self, name: str) -> Callable[[float], float] | None:
            """Find it."""
            return (lambda x: -x) if name == "answer" else None

    library.import_module(Answers())
    assert library["ask"](1.5) == -3


def test_absent_function_is_named(library) -> None:
    """The error of a look-up passes through host code."""
    with pytest.raises(runtime.FunctionNotFoundError, match="answer"):
        library["ask"](1.5)


def test_kernel_of_the_oldest_generation_is_launched(load_legacy) -> None:
    """Packed host code launches a kernel on a real device."""
    kernel = (
        "__kernel void scale(__global float *x, float by, int n) { x[get_global_id(0)] *= by; }"
    )
    info = runtime.FunctionInfo(
        "scale", ("handle", "float32", "int32"), ("blockIdx.x", "threadIdx.x")
    )
    writer = runtime.Writer()
    writer.write_u64(1)
    writer.write_string("opencl")
    runtime.DeviceModule("opencl", kernel, "cl", [info]).save_to_binary(writer)
    library = load_legacy(b"".join(map(bytes, writer.finish())))
    needs.opencl_device()
    x = runtime.tensor(np.ones(64, "float32"), runtime.Device("opencl", 0))
    library["triple"](x)
    np.testing.assert_array_equal(np.full(64, 3, "float32"), x.numpy())


@pytest.mark.parametrize("options", [(), ("-DUNDEFINED",)], ids=["llvm", "c"])
def test_a_c_program_has_the_same_outcomes(tmp_path, generation, golden_dir, options) -> None:
    """Workspaces, threads, errors, and functions of the program, found by name."""
    path = compile_legacy(tmp_path, (golden_dir / f"{generation}.bin").read_bytes(), *options)
    x = np.arange(1000, dtype="float32")
    lines = [
        f"load {path}",
        f"call 0 smooth {tensor(x)} {tensor(x)}",
        f"call 0 smooth {tensor(x)} {tensor(x[1:])}",
        *("call 0 ask f:1.5", "listen answer", "call 0 ask f:1.5", "call 0 ask i:7"),
    ]
    by_c = run_by_c(*lines)
    assert by_c == run_by_python_alone(*lines)
    assert "error ValueError: smooth: two lengths" in by_c
    assert "error ValueError: not seven" in by_c
