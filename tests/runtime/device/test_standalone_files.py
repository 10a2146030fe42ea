"""Standalone files of device code and weights, and the metadata file next to device code."""

from __future__ import annotations

import json
import os
import struct
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import runtime

from ...support import needs
from ...support.paths import FOUND
from ...support.process import run_python

TAGS = tuple(f"{index}.{axis}" for index in ("blockIdx", "threadIdx") for axis in "xyz")
PTX = """
.version 7.0 // .entry not_me(.param .u64 x)
.target sm_70
.visible .entry scale(
    .param .u64 .ptr .global .align 16 x,
    .param .u32 n,
    .param .f32 by
)
{ ret; }
.entry plain { ret; }
.visible .entry by_value(.param .align 4 .b8 s[16]) { ret; }
"""
CL = """
/* kernel void not_me(global int *x) {} */
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void scale(__global float *restrict x, const uint n, float4 by) {}
kernel void nothing(void) { char *s = "kernel void nor_me(int x)"; }
kernel void fill(global const uchar* x, unsigned int n, const long k) {}
kernel void with_local(local float *scratch) {}
kernel void with_struct(struct s value) {}
"""
META = {
    "tvm_version": "0.1.0",
    "func_info": {
        "add_kernel": {
            "name": "add_kernel0",
            "arg_types": ["handle", "float32x4"],
            "launch_param_tags": ["blockIdx.x", "tir.use_dyn_shared_memory"],
        }
    },
}
INFO = runtime.FunctionInfo(
    "add_kernel0", ["handle", "float32x4"], ["blockIdx.x", "tir.use_dyn_shared_memory"]
)


def spirv(model: int = 6, names: Sequence[str] = ("scale",), types: Sequence[int] = ()) -> bytes:
    """A module of entry points to one function; types: 2 is int32, 3 float, 4 a pointer."""

    def words(opcode: int, *operands: int) -> list[int]:
        return [(len(operands) + 1) << 16 | opcode, *operands]

    entries = []
    for name in names:
        text = name.encode().ljust(len(name) // 4 * 4 + 4, b"\0")
        entries += words(15, model, 7, *struct.unpack(f"<{len(text) // 4}I", text))
    body = [
        *(entries + words(19, 1) + words(21, 2, 32, 0) + words(22, 3, 32) + words(32, 4, 5, 3)),
        *(words(33, 5, 1, *(types or (4, 2, 3))) + words(54, 1, 7, 0, 5) + words(56)),
    ]
    return struct.pack(f"<{5 + len(body)}I", 0x07230203, 0x10000, 0, 8, 0, *body)


def measured(code: str) -> object:
    """Return the JSON that a process prints within 128 MiB besides Python and 5 s of CPU time."""
    limit = (
        "import resource, runtime.device.standalone_files, runtime.device.kernel_source\n"
        "import runtime.modules.device\n"
        "with open('/proc/self/statm') as file:\n"
        "    used = int(file.read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (128 << 20),) * 2)\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (5, 5))\n"
    )
    return run_python(limit + code)


@pytest.mark.parametrize(
    ("name", "type_key", "fmt"),
    [
        ("k.ptx", "cuda", "ptx"),
        ("k.cubin", "cuda", "cubin"),
        ("k.fatbin", "cuda", "fatbin"),
        ("k.cl", "opencl", "cl"),
        ("k.clbin", "opencl", "clbin"),
        ("k.spv", "opencl", "spirv"),
        ("k.hsaco", "hip", "hsaco"),
    ],
)
def test_device_code_is_a_module_with_the_given_kernels(name, type_key, fmt, tmp_path) -> None:
    """The file's bytes, and the kernels of the file next to it."""
    (tmp_path / name).write_bytes(b"code")
    (tmp_path / "k.tvm_meta.json").write_text(json.dumps(META))
    module = runtime.load(tmp_path / name)
    assert isinstance(module, runtime.DeviceModule)
    assert (module.type_key, module.fmt, bytes(module.data)) == (type_key, fmt, b"code")
    assert module.functions == {"add_kernel": INFO}
    assert runtime.load(os.fsencode(tmp_path / name)).type_key == type_key


def test_saved_device_code_is_restored(tmp_path) -> None:
    """Code and kernels are written as TVM writes them, and read again."""
    runtime.DeviceModule("cuda", PTX, "ptx", {"add_kernel": INFO}).save(tmp_path / "k.ptx")
    assert json.loads((tmp_path / "k.tvm_meta.json").read_text()) == META
    module = runtime.load(tmp_path / "k.ptx")
    assert (module.get_source(), module.functions) == (PTX, {"add_kernel": INFO})


def test_tags_of_older_files_are_read(tmp_path) -> None:
    """thread_axis_tags, no tags, and later fields are accepted."""
    told = {"k": {"name": "k", "arg_types": [], "thread_axis_tags": ["threadIdx.x"]}}
    told["n"] = {"name": "n", "arg_types": ["int8"], "arg_extra_tags": [0]}
    (tmp_path / "k.ptx").write_text(PTX)
    (tmp_path / "k.tvm_meta.json").write_text(json.dumps({"func_info": told}))
    functions = runtime.load(tmp_path / "k.ptx").functions
    assert functions == {
        "k": runtime.FunctionInfo("k", [], ["threadIdx.x"]),
        "n": runtime.FunctionInfo("n", ["int8"]),
    }


@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        ("k.ptx", PTX.encode(), {"scale": ["handle", "int32", "float32"], "plain": []}),
        (
            "k.cl",
            CL.encode(),
            {
                "scale": ["handle", "uint32", "float32x4"],
                "nothing": [],
                "fill": ["handle", "uint32", "int64"],
            },
        ),
        ("k.spv", spirv(), {"scale": ["handle", "int32", "float32"]}),
    ],
)
def test_code_states_its_kernels(name, code, expected, tmp_path) -> None:
    """Without a metadata file: names and types, and all six launch integers."""
    (tmp_path / name).write_bytes(code)
    functions = runtime.load(tmp_path / name).functions
    assert {key: list(info.arg_types) for key, info in functions.items()} == expected
    assert {info.launch_param_tags for info in functions.values()} == {TAGS}


@pytest.mark.parametrize(
    ("name", "start", "repeated", "end"),
    [
        ("k.ptx", "", ".entry a(", ""),
        ("k.ptx", "", "/* ", ""),
        ("k.ptx", ".entry a(.param .", "a", "[)"),
        ("k.cl", "", "/* ", ""),
        ("k.cl", '"', '\\"', ""),
        ("k.cl", "", "__attribute__((", ""),
        ("k.cl", "", "kernel void f(", ""),
    ],
)
def test_code_is_read_in_linear_time(name, start, repeated, end, tmp_path) -> None:
    """Code that opens repeatedly and never closes would take hours in quadratic time."""
    (tmp_path / name).write_text(start + 300_000 * repeated + end)
    assert runtime.load(tmp_path / name).fmt == name[2:]


def test_opencl_source_runs_as_it_is(tmp_path) -> None:
    """A lone .cl is called: arguments, then six launch integers."""
    needs.opencl_device()
    device = runtime.Device("opencl", 0)
    (tmp_path / "scale.cl").write_text(
        "kernel void scale(global float *x, float by, uint n) {\n"
        "  size_t i = get_global_id(0); if (i < n) x[i] *= by;\n}\n"
    )
    x = runtime.tensor(np.arange(6, dtype="float32"), device)
    runtime.load(tmp_path / "scale.cl")["scale"](x, 2.0, 5, *(2, 1, 1), *(4, 1, 1))
    assert x.numpy().tolist() == [0, 2, 4, 6, 8, 5]


def test_kernel_of_a_compiler_is_found(tmp_path) -> None:
    """PTX as clang writes it."""
    needs.program("clang")
    (tmp_path / "k.cl").write_text("kernel void scale(global float *x, float by, int n) {}")
    command = ["clang", "-x", "cl", "-target", "nvptx64--nvidiacl", "-S", "k.cl", "-o", "k.ptx"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=True)
    found = {name: runtime.load(tmp_path / name).functions for name in ("k.cl", "k.ptx")}
    assert list(found["k.ptx"]) == ["scale"]
    assert found["k.cl"] == found["k.ptx"] | {
        "scale": runtime.FunctionInfo("scale", ["handle", "float32", "int32"], TAGS)
    }


@pytest.mark.parametrize(
    "code",
    [
        (FOUND / "spirv_1000_entries_30000_parameters.spv").read_bytes(),
        spirv(names=[f"k{i}" for i in range(1000)], types=[2] * 65_000),
        spirv(names=[f"k{i}" for i in range(10_000)], types=[2] * 256),
    ],
    ids=["30000", "65000", "256"],
)
def test_spirv_of_too_many_parameters_has_no_kernels(code, tmp_path) -> None:
    """Entry points that share a long function took minutes; the bounds are generous."""
    (tmp_path / "k.spv").write_bytes(code)
    path = str(tmp_path / "k.spv")
    assert measured(f"import runtime; print(len(runtime.load({path!r}).functions))") == 0


def test_spirv_entries_share_their_parameters(tmp_path) -> None:
    """Time and memory are linear in the file, up to the parameters that a function may have."""
    code = spirv(names=[f"k{i}" for i in range(10_000)], types=[2, 3, 4] * 85)
    (tmp_path / "k.spv").write_bytes(code)
    load = f"import runtime; k = runtime.load({str(tmp_path / 'k.spv')!r}).functions\n"
    check = "assert k['k9999'].arg_types == ('int32', 'float32', 'handle') * 85\n"
    count = "print([len(k), len({id(info.arg_types) for info in k.values()})])"
    assert measured(load + check + count) == [10_000, 1]


def test_shaders_are_for_vulkan(tmp_path) -> None:
    """SPIR-V whose entry points are not kernels."""
    (tmp_path / "k.spv").write_bytes(spirv(model=5))
    module = runtime.load(tmp_path / "k.spv")
    assert (module.type_key, module.function_names()) == ("vulkan", ["scale"])
    assert bytes(module.data["scale"].words) == spirv(model=5)


@pytest.mark.parametrize("name", ["k.cubin", "k.fatbin", "k.clbin", "k.hsaco", "k.cl"])
def test_code_without_signatures_says_which_argument_is_needed(name, tmp_path) -> None:
    """The module is loaded; a look-up names the missing metadata file."""
    (tmp_path / name).write_bytes(b"\x7fELF")
    with pytest.raises(runtime.FunctionNotFoundError, match=r"write .*k.tvm_meta.json beside it"):
        runtime.load(tmp_path / name)["k"]


def test_kernel_that_is_left_out_says_why(tmp_path) -> None:
    """The look-up names the parameter whose type is unknown."""
    (tmp_path / "k.cl").write_text(CL)
    with pytest.raises(runtime.FunctionNotFoundError, match="'local float .scratch' is"):
        runtime.load(tmp_path / "k.cl")["with_local"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        '{"func_info": []}',
        '{"func_info": {"k": {}}}',
        '{"func_info": {"k": {"name": 1, "arg_types": []}}}',
        '{"func_info": {"k": {"name": "k", "arg_types": ["flaot32"]}}}',
        '{"func_info": {"k": {"name": "k", "arg_types": [], "launch_param_tags": [1]}}}',
        "[" * 100_000,
        '{"func_info": ' + "9" * 5000,
        '{"func_info": {}, "more": [' + "[]," * 400_000 + "0]}",
    ],
    ids=range(11),
)
def test_malformed_meta_is_refused(text, tmp_path) -> None:
    """The error is ours, and names the file."""
    (tmp_path / "k.ptx").write_text(PTX)
    (tmp_path / "k.tvm_meta.json").write_text(text)
    with pytest.raises(runtime.BlobFormatError, match=r"k.tvm_meta.json: .*expected func_info"):
        runtime.load(tmp_path / "k.ptx")


def test_damaged_spirv_is_carried(tmp_path) -> None:
    """Any bytes: unreadable code has no kernels, and raises no error."""
    good = spirv()
    for length in range(0, len(good), 2):
        (tmp_path / "k.spv").write_bytes(good[:length])
        assert runtime.load(tmp_path / "k.spv").fmt == "spirv"
    for place in range(len(good)):
        (tmp_path / "k.spv").write_bytes(good[:place] + b"\xff" + good[place + 1 :])
        runtime.load(tmp_path / "k.spv")


def test_params_are_a_module_with_weights(tmp_path) -> None:
    """A file of relay.save_param_dict can be imported, exported, and saved again."""
    arrays = {"w": np.arange(6, dtype="float32").reshape(2, 3), "b": np.ones(2, "int8")}
    path = tmp_path / "model.params"
    path.write_bytes(runtime.save_param_dict(arrays))
    module = runtime.load(path)
    assert module.type_key == "const_loader"
    assert {n: np.asarray(module.weights[n]).tolist() for n in module.weights} == {
        n: a.tolist() for n, a in arrays.items()
    }
    module.save(tmp_path / "again.params")
    assert (tmp_path / "again.params").read_bytes() == path.read_bytes()


def test_safetensors_are_a_module_with_weights(tmp_path) -> None:
    """The module has the bytes of the file."""
    header = b'{"w": {"dtype": "I16", "shape": [2], "data_offsets": [0, 4]}}'
    data = len(header).to_bytes(8, "little") + header + bytes([1, 0, 2, 0])
    (tmp_path / "model.safetensors").write_bytes(data)
    module = runtime.load(tmp_path / "model.safetensors")
    assert module.type_key == "safetensors"
    assert memoryview(module.weights["w"]).tolist() == [1, 2]


@pytest.mark.parametrize("name", ["k.ptx", "model.params", "model.safetensors"])
@pytest.mark.parametrize(
    "make",
    [
        lambda path: None,
        lambda path: path.mkdir(),
        lambda path: os.mkfifo(path),
        lambda path: path.symlink_to("/dev/zero"),
    ],
    ids=["missing", "folder", "pipe", "device"],
)
def test_path_that_is_not_a_file_is_refused(make, name, tmp_path) -> None:
    """The error names the file, without blocking."""
    make(tmp_path / name)
    with pytest.raises(runtime.LibraryLoadError, match=name):
        runtime.load(tmp_path / name)


@pytest.mark.parametrize("name", ["model.params", "model.safetensors"])
@pytest.mark.parametrize("data", [b"", b"\xff" * 40], ids=["empty", "other"])
def test_weights_that_are_none_are_refused(name, data, tmp_path: Path) -> None:
    """The error says that the file is malformed, and names it."""
    (tmp_path / name).write_bytes(data)
    with pytest.raises(runtime.BlobFormatError, match=name):
        runtime.load(tmp_path / name)
