"""Objects with functions for TVM FFI that other compilers made are packed as static libraries."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import packer as packer_package
import runtime

from ...support.command_line import refused
from ...support.dso_script import run_by_c
from ...support.other_compiler import compiled, run_time
from ...support.process import run_python

CUTE = "libcuda_dialect_runtime_static.a"
NOTE = "packer: note: the process that loads it must provide symbols of TVM: TVMFFI"
FOUND = "_cudaLaunchKernelEx, cuda_dialect_init_library_once, cuda_dialect_unload_library_once"


def noted(run: subprocess.CompletedProcess[str]) -> str:
    """Return the output of a run that notes TVM's functions, which a load provides."""
    assert run.returncode == 0, run.stderr
    (line,) = run.stderr.splitlines()
    assert line.startswith(NOTE) and line.endswith("; runtime.load does")
    return run.stdout


@pytest.mark.parametrize("dialect", ["tvm", "tvm-ffi"])
def test_functions_are_found_and_launch_on_the_current_stream(packer, tmp_path, dialect) -> None:
    """Here, in a program without Python and in tvm_ffi; errors come from the code."""
    compiled(tmp_path / "kernels.o", "-DCUTE")
    run_time(tmp_path / "lib", CUTE)
    link = ("-Llib", "-lcuda_dialect_runtime_static", "--format", dialect)
    assert ", 3 functions, 1 module" in noted(packer("export", "m.so", "kernels.o", *link))
    path = tmp_path / "m.so"
    module = runtime.load(path)
    assert module.function_names() == ["get", "launch", "set"]
    assert [module["set"](2, 0, 7), module["launch"](), module["set"](2, 0, 0)] == [0, 7, 7]
    with pytest.raises(TypeError, match="Mismatched number of arguments"):
        module["get"]()
    printed = run_by_c(f"load {path}", "call 0 set i:2 i:0 i:7", "call 0 launch", "call 0 get")
    assert "> call 0 launch\nint 7\n" in printed
    assert "TypeError: Mismatched" in printed
    code = """
import json, sys, tvm_ffi
module = tvm_ffi.load_module(sys.argv[1])
with tvm_ffi.use_raw_stream(tvm_ffi.device("cuda:0"), 7): print(json.dumps(module["launch"]()))
"""
    assert run_python(code, str(path)) == 7


@pytest.mark.parametrize("kind", ["archive", "thin archive", "legacy", "declared", "beside C"])
def test_no_form_of_an_export_loses_a_function(packer, tmp_path, kind) -> None:
    """Archives, hidden C functions, and host code beside it."""
    made = compiled(tmp_path / "kernels.o")
    if "archive" in kind:
        flags = "rcsT" if kind.startswith("thin") else "rcs"
        subprocess.run(["ar", flags, "kernels.a", "kernels.o"], cwd=tmp_path, check=True)
        made = tmp_path / "kernels.a"
    if kind == "declared":
        module = packer_package.StaticLibraryModule(made)
        assert module.function_names() == ["get", "set"]
        packer_package.export_library(
            module, tmp_path / "m.so", output=packer_package.Output(visibility="declared")
        )
    else:
        more = {"legacy": ["--legacy-calls"], "beside C": ["add.c"]}.get(kind, [])
        count = f", {2 + (kind == 'beside C')} functions"
        assert count in packer("export", "m.so", made.name, *more).stdout
    loaded = runtime.load(tmp_path / "m.so")
    assert [loaded["set"](2, 0, 3), loaded["get"](2, 0), loaded["set"](2, 0, 0)] == [0, 3, 3]


@pytest.mark.parametrize("prefix", ["", "net1_"])
def test_functions_of_a_linked_model_are_registered(packer, tmp_path, prefix) -> None:
    """By their names with the prefix of the model, as TVM FFI looks them up."""
    compiled(tmp_path / "kernels.o")
    options = ("--c-symbol-prefix", prefix) if prefix else ()
    ran = packer("export", "net.o", "kernels.o", "--system-lib", *options)
    assert ran.returncode == 0, ran.stderr
    packer_package.link_library([tmp_path / "net.o"], tmp_path / "linked.so")
    code = """
import json, sys, runtime
linked = runtime.load(sys.argv[1])  # registers the model
model = runtime.system_lib(sys.argv[2])
print(json.dumps([model["set"](2, 0, 7), model["get"](2, 0)]))
"""
    assert run_python(code, str(tmp_path / "linked.so"), prefix) == [0, 7]


def test_the_archive_of_a_run_time_is_named(packer, tmp_path) -> None:
    """On the search path, in an installed package, and else by its name; its option is enough."""
    compiled(tmp_path / "kernels.o", "-DCUTE")
    needed = "cuda_dialect_unload_library_once (needed by unload in kernels.o)"

    def advice(*options: str, path: Path | None = None) -> str:
        environment = {**os.environ, "PYTHONPATH": str(path)} if path else None
        message = refused(packer("export", "m.so", "kernels.o", *options, env=environment))
        assert "_cudaLaunchKernelEx (needed by __tvm_ffi_launch in kernels.o)" in message
        assert needed in message
        return message

    assert f"add {CUTE} of PyPI's nvidia-cutlass-dsl, which defines {FOUND}" in advice()
    run_time(tmp_path / "lib", CUTE)
    named = f"add -lcuda_dialect_runtime_static, which defines {FOUND}"
    assert named in advice(f"-L{tmp_path / 'lib'}")
    installed = run_time(tmp_path / "packages" / "nvidia_cutlass_dsl" / "cu13" / "lib", CUTE)
    option = f"-L{installed.parent} -lcuda_dialect_runtime_static"
    assert f"add {option}, which defines {FOUND}" in advice(path=tmp_path / "packages")
    noted(packer("export", "m.so", "kernels.o", *option.split()))


def test_cuda_libraries_are_named(packer, tmp_path) -> None:
    """Its run time and its driver, for what nvcc and Triton write."""
    compiled(tmp_path / "kernels.o", "-DCUDA")
    empty = {**os.environ, "CUDA_HOME": str(tmp_path)}
    message = refused(packer("export", "m.so", "kernels.o", env=empty))
    assert "add libcudart_static.a of the CUDA toolkit, which defines cudaLaunchKernel" in message
    assert "stub), which defines cuLaunchKernel; add lib" in message
    stubs = tmp_path / "lib64" / "stubs"
    stubs.mkdir(parents=True)
    (tmp_path / "driver.c").write_text("int cuLaunchKernel(void *stream) { return !stream; }\n")
    shared = ["cc", "-shared", "-fPIC", "driver.c", "-o", stubs / "libcuda.so"]
    subprocess.run(shared, cwd=tmp_path, check=True)
    message = refused(packer("export", "m.so", "kernels.o", env=empty))
    assert f"add -L{stubs} -lcuda, which defines cuLaunchKernel" in message
