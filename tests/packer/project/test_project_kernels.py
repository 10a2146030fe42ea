"""Kernels of device code without a table of functions: read from the code, or named in a note."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import runtime

from ...support import needs
from .projects import KERNELS, exported, project

CL = """
kernel void scale(global float *x, float by) { x[get_global_id(0)] *= by; }
typedef uint count_t;
kernel void fill(global float *x, count_t n) { if (get_global_id(0) < n) x[get_global_id(0)] = 7; }
"""
CU = """
struct pair { double a, b, c; };
extern "C" __global__ void scale(float *x, float by, int n) { if (n) *x *= by; }
extern "C" __global__ void take(pair p, float *x) { *x = p.b; }
__noinline__ __device__ float twice(float a) { return a * 2; }
extern "C" __global__ void call(float *x) { *x = twice(*x); }
"""


def notes(folder: Path, text: str) -> list[str]:
    """Read a project; return its notes without the path."""
    found = project(folder, text).inputs.notes
    assert all(note.startswith(f"{folder}/packer.toml: [module.kernels] ") for note in found)
    return [note.removeprefix(f"{folder}/packer.toml: [module.kernels] ") for note in found]


def test_kernels_are_those_of_the_code(tmp_path) -> None:
    """As in runtime.load of the file; a table is the complete list."""
    (tmp_path / "k.cl").write_text(CL.partition("typedef")[0])
    found = project(tmp_path, KERNELS)
    assert found.inputs.notes == []
    module = exported(found, tmp_path)
    assert module.functions == runtime.load(tmp_path / "k.cl").functions
    given = project(tmp_path, KERNELS + "[module.kernels.functions]\nother = {}\n")
    assert list(given.root.functions) == ["other"]


def test_kernels_of_the_file_beside_the_code_come_first(tmp_path) -> None:
    """The file that DeviceModule.save writes."""
    info = runtime.FunctionInfo("scale", ["handle", "float32"], ["threadIdx.x"])
    runtime.DeviceModule("opencl", CL, "cl", [info]).save(tmp_path / "k.cl")
    assert project(tmp_path, KERNELS).root.functions == {"scale": info}


def test_kernel_that_is_left_out_is_named_with_a_table_that_declares_it(tmp_path) -> None:
    """The table of the note, with the right type, is complete."""
    (tmp_path / "k.cl").write_text(CL)
    (note,) = notes(tmp_path, KERNELS)
    reason = "sources: k.cl: kernel 'fill' is left out: the type of its parameter 'count_t n' is"
    assert note.startswith(reason)
    table = note[note.index("\n") + 1 :].replace("int32", "uint32")
    declared = project(tmp_path, f"{KERNELS}{table}\n")
    assert declared.inputs.notes == []
    assert {name: info.arg_types for name, info in declared.root.functions.items()} == {
        "scale": ("handle", "float32"),
        "fill": ("handle", "uint32"),
    }


@pytest.mark.parametrize("parameter", ["local float *s", "struct pair s", "image2d_t *s"])
def test_parameter_that_no_launch_passes_is_named(parameter, tmp_path) -> None:
    """Local memory and structs cannot be declared, so no table is shown."""
    (tmp_path / "k.cl").write_text(f"{CL.partition('typedef')[0]}kernel void k({parameter}) {{}}")
    (note,) = notes(tmp_path, KERNELS)
    text = f"kernel 'k' is left out: a launch passes numbers and arrays, not {parameter!r}"
    assert note == f"sources: k.cl: {text}"


def test_kernels_of_a_cubin_are_shown_with_their_sizes(tmp_path) -> None:
    """A cubin of nvcc has no types; the note has a table with probable ones."""
    (tmp_path / "k.cu").write_text(CU)
    command = [needs.cuda_tool("nvcc"), "-cubin", "-arch=sm_90", "k.cu", "-o", "k.cubin"]
    subprocess.run(command, cwd=tmp_path, check=True)
    text = KERNELS.replace("opencl", "cuda").replace("k.cl", "k.cubin")
    (note,) = notes(tmp_path, text)
    assert "a cubin does not state the types of its kernels" in note
    table = note[note.index("\n") + 1 :]
    functions = project(tmp_path, f"{text}{table}\n").root.functions
    types = {name: info.arg_types for name, info in functions.items()}
    assert types == {"scale": ("handle", "int32", "int32"), "call": ("handle",)}


def test_damaged_cubin_has_no_kernels(tmp_path) -> None:
    """It is stored as it is; the note says that no kernel can be called."""
    text = KERNELS.replace("opencl", "cuda").replace("k.cl", "k.cubin")
    for data in (b"", b"\x7fELF" + bytes(60), b"\x7fELF" + b"\xff" * 200):
        (tmp_path / "k.cubin").write_bytes(data)
        (note,) = notes(tmp_path, text)
        assert note.endswith(
            "k.cubin: the code does not state the types of its kernels, so none can be called"
        )


def test_malformed_file_beside_the_code_is_an_error(tmp_path) -> None:
    """With its path."""
    (tmp_path / "k.cl").write_text(CL)
    (tmp_path / "k.tvm_meta.json").write_text(json.dumps({"func_info": []}))
    with pytest.raises(runtime.PackerError, match=r"k.tvm_meta.json: .*expected func_info"):
        project(tmp_path, KERNELS)
