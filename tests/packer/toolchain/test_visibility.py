"""visibility="declared": a library exports its declared functions, and what a load needs."""

from __future__ import annotations

import pytest

import packer
import runtime

from ...support import needs
from ..compilers import output_of

SOURCE = "int helper(int a) { return 2 * a; }\nint data = 1;\nint f(int a) { return helper(a); }\n"


def module() -> packer.CSourceModule:
    """Code with a function that is not declared, and constants in the blob."""
    made = packer.CSourceModule(SOURCE, functions={"f": "int(int a)"})
    made.import_module(packer.CSourceModule('extern "C" int cxx() { return 1; }', fmt="cc"))
    made.import_module(runtime.DeviceModule("opencl", b"__kernel void k() {}", "cl", []))
    return made


def exported(path) -> set[str]:
    """The dynamic symbols that a library defines."""
    lines = output_of("nm", "-D", "--defined-only", path).splitlines()
    return {line.split()[-1] for line in lines}


@pytest.mark.parametrize("embed", ["segment", "llvm", "c"])
@pytest.mark.parametrize("linker", ["bfd", "gold", "lld", "mold"])
def test_only_declared_functions_are_exported(tmp_path, linker, embed) -> None:
    """With every linker and embedder; the library loads, and its functions are called."""
    needs.linker(linker)
    options = [f"-fuse-ld={linker}"]
    made = {}
    for visibility in ("default", "declared"):
        path = tmp_path / f"{visibility}.so"
        packer.export_library(
            module(),
            path,
            options=options,
            entry="f",
            output=packer.Output(visibility=visibility),
            build=packer.Build(embed=embed),
        )
        made[visibility] = exported(path)
        assert runtime.load(path)(21) == 42
    assert {"helper", "data", "cxx"} <= made["default"]
    hidden = made["default"] - made["declared"]
    assert hidden - {"_edata", "_end", "__bss_start", "_init", "_fini"} == {"helper", "data", "cxx"}
    assert made["declared"] <= made["default"]
    assert "f" in made["declared"]


@pytest.mark.parametrize("dialect", ["tvm", "tvm-ffi"])
def test_code_with_contexts(tmp_path, dialect) -> None:
    """A context symbol that the code defines stays: the loader fills it."""
    code = "void *__tvm_ffi__library_ctx;\nint f(void) { return __tvm_ffi__library_ctx != 0; }\n"
    host = packer.CSourceModule(code, functions={"f": "int(void)"})
    path = tmp_path / "a.so"
    packer.export_library(host, path, format=dialect, output=packer.Output(visibility="declared"))
    assert runtime.load(path)["f"]() == 1


def test_refused_for_other_outputs(tmp_path) -> None:
    """Only a linker hides symbols; an unknown visibility is refused too."""
    for suffix in ("o", "a", "tar"):
        with pytest.raises(packer.ExportError, match=f"shared libraries, found .{suffix}; drop it"):
            packer.export_library(
                module(), tmp_path / f"a.{suffix}", output=packer.Output(visibility="declared")
            )
    with pytest.raises(ValueError, match="unknown visibility 'hidden'; known: 'default', 'declar"):
        packer.export_library(
            module(), tmp_path / "a.so", output=packer.Output(visibility="hidden")
        )
    assert list(tmp_path.iterdir()) == []


def test_cuda_is_linked_so(tmp_path) -> None:
    """The driver nvcc passes the option to the linker."""
    needs.cuda_tool("nvcc")
    code = '__global__ void k(float *p) { *p = 1; }\nextern "C" int f() { return 7; }\nint g;\n'
    host = packer.CSourceModule(code, fmt="cu", functions={"f": "int(void)"})
    packer.export_library(host, tmp_path / "a.so", output=packer.Output(visibility="declared"))
    assert "g" not in exported(tmp_path / "a.so")
