"""OpenCL kernels on a real device. Without one these tests fail: CI installs PoCL for them."""

from __future__ import annotations

import gc
import struct
import threading
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime
from runtime import Device, DeviceError, DeviceModule, FunctionInfo

from ..opencl_binary import build_binary
from ..process import run_python
from ..spirv import FILL, compile_spirv

DEVICE = Device("opencl", 0)
TAGS = ("blockIdx.x", "threadIdx.x")
GRID = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z")
SHARED = "tir.use_dyn_shared_memory"
SCALE_SOURCE = """
__kernel void scale(__global float *x, float by, int n) {
  int i = get_global_id(0);
  if (i < n) x[i] *= by;
}
"""
SCALE = FunctionInfo("scale", ("handle", "float32", "int32"), TAGS)
# Type, its name in OpenCL C, values at both ends, and their struct format.
SCALARS = [
    ("int8", "char", (-128, 127), "b"),
    ("uint8", "uchar", (0, 255), "B"),
    ("int16", "short", (-(2**15), 2**15 - 1), "h"),
    ("uint16", "ushort", (0, 2**16 - 1), "H"),
    ("int32", "int", (-(2**31), 2**31 - 1), "i"),
    ("uint32", "uint", (0, 2**32 - 1), "I"),
    ("int64", "long", (-(2**63), 2**63 - 1), "q"),
    ("uint64", "ulong", (0, 2**64 - 1), "Q"),
    ("bool", "char", (False, True), "?"),
    ("float32", "float", (-1.5, 3.4028234663852886e38), "f"),
    ("float64", "double", (-1.5, 1e308), "d"),
    # A type of the code's own name, since half is no argument without an extension.
    ("float16", "bits", (-1.5, 65504.0, 5.960464477539063e-08, 0.1, 2047.5, 65519.9), "e"),
]  # fmt: skip


def kernels(source: str, *infos: FunctionInfo, fmt: str = "cl") -> DeviceModule:
    """A module of OpenCL C."""
    return DeviceModule("opencl", source, fmt, infos)


def on_device(array: Any) -> runtime.Tensor:
    """A copy on the device."""
    return runtime.tensor(np.asarray(array), DEVICE)


def test_kernel_runs() -> None:
    """A kernel computes on the device, and a copy back waits for it."""
    x = on_device(np.arange(1000, dtype=np.float32))
    kernels(SCALE_SOURCE, SCALE)["scale"](x, 2.5, 999, 16, 64)
    expected = np.arange(1000, dtype=np.float32) * np.float32(2.5)
    expected[999] = 999
    np.testing.assert_array_equal(expected, x.numpy())


@pytest.mark.parametrize(("text", "name", "values", "form"), SCALARS)
def test_scalar_arrives(text: str, name: str, values: tuple[Any, ...], form: str) -> None:
    """A scalar of each type arrives with all its bits."""
    source = (
        "typedef ushort bits;\n"
        f"__kernel void store(__global uchar *out, {name} value)"
        " { for (int i = 0; i < sizeof value; i++) out[i] = ((uchar *)&value)[i]; }"
    )
    store = kernels(source, FunctionInfo("store", ("handle", text), ()))["store"]
    for value in values:
        out = on_device(np.zeros(8, np.uint8))
        store(out, value)
        packed = struct.pack(form, value)
        assert packed.ljust(8, b"\0") == out.numpy().tobytes()


@pytest.mark.parametrize("lanes", [2, 3, 4, 8, 16])
def test_vector_arrives(lanes: int) -> None:
    """A vector goes as an array of its lanes; one of three has the room of four."""
    source = (
        f"__kernel void store(__global int *out, int{lanes} value, int last)"
        f" {{ vstore{lanes}(value, 0, out); out[{lanes}] = last; }}"
    )
    info = FunctionInfo("store", ("handle", f"int32x{lanes}", "int32"), ())
    out = on_device(np.zeros(lanes + 1, np.int32))
    kernels(source, info)["store"](out, np.arange(lanes, dtype=np.int32) - 1, 77)
    assert [*range(-1, lanes - 1), 77] == out.numpy().tolist()


@pytest.mark.parametrize(
    "array", [np.zeros(3, np.int32), np.zeros(4, np.float32), np.zeros(8, np.int32)[::2]]
)
def test_vector_of_another_form_is_refused(array: np.ndarray[Any, Any]) -> None:
    """Row D11: a vector has its lanes, its type, and no gaps."""
    info = FunctionInfo("f", ("int32x4",), ())
    with pytest.raises(ValueError, match="expected int32x4 as a compact array of 4 elements"):
        kernels("", info)["f"](array)


def test_extents_are_those_of_the_tags() -> None:
    """Each tag's integer is the extent along its axis, whatever the tags' order."""
    source = """
    __kernel void sizes(__global int *out) {
      if (get_global_linear_id() == 0)
        for (int axis = 0; axis < 3; axis++) {
          out[axis] = get_num_groups(axis);
          out[3 + axis] = get_local_size(axis);
        }
    }
    """.replace("get_global_linear_id()", "get_global_id(0) + get_global_id(1) + get_global_id(2)")
    order = tuple(reversed(GRID))
    sizes = kernels(source, FunctionInfo("sizes", ("handle",), order))["sizes"]
    out = on_device(np.zeros(6, np.int32))
    sizes(out, 7, 5, 4, 3, 2, 6)
    assert out.numpy().tolist() == [6, 2, 3, 4, 5, 7]


@pytest.mark.parametrize("zero", range(6))
def test_extent_of_zero_launches_nothing(zero: int) -> None:
    """Row D11: an extent of 0, of the grid or of a block, runs no thread."""
    x = on_device(np.ones(2, np.float32))
    scale = kernels(SCALE_SOURCE, FunctionInfo("scale", SCALE.arg_types, GRID))["scale"]
    scale(x, 3.0, 2, *(int(axis != zero) for axis in range(6)))
    assert x.numpy().tolist() == [1, 1]
    scale(x, 3.0, 2, *(1,) * 6)
    assert x.numpy().tolist() == [3, 1]


def test_empty_tensor_is_not_written_beyond() -> None:
    """Row D11: a launch over the 0 elements of a tensor leaves all memory as it was."""
    source = "__kernel void f(__global int *x, int n) { x[get_global_id(0)] = n; }"
    kernel = kernels(source, FunctionInfo("f", ("handle", "int32"), TAGS))["f"]
    whole = on_device(np.zeros(8, np.int32))
    kernel(whole, 7, 0, 8)
    kernel(runtime.empty((0,), "int32", DEVICE), 7, 0, 8)
    assert whole.numpy().tolist() == [0] * 8


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        ((None, 1.0, 1, 0), TypeError, "expected 5 arguments"),
        ((None, 1.0, "1", 0, 1), TypeError, "argument 3: expected int32, found a str"),
        ((None, 1.0, 1, 0, -1), ValueError, "argument 5: expected 0 to 2147483647 to launch with"),
        ((None, 1.0, 1, 0, 2**31 - 1), DeviceError, "expected a threadIdx.x of at most"),
        ((np.ones(1, np.float32), 1.0, 1, 0, 1), ValueError, "expected a tensor on opencl"),
    ],
)
def test_empty_launch_is_checked_too(
    args: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    """Row D11: arguments of a launch of 0 blocks are refused as those of any other."""
    with pytest.raises(error, match=message):
        kernels(SCALE_SOURCE, SCALE)["scale"](*args)


def test_kernel_without_arguments_or_tags_runs_once() -> None:
    """A kernel without any tag is one work-item; one without tensors goes to the current device."""
    assert kernels("__kernel void f() {}", FunctionInfo("f"))["f"]() is None


def test_none_is_null() -> None:
    """None for a handle is a null pointer in the kernel."""
    source = "__kernel void f(__global int *x, __global int *out) { out[0] = x == 0; }"
    out = on_device(np.zeros(1, np.int32))
    kernels(source, FunctionInfo("f", ("handle", "handle"), ()))["f"](None, out)
    assert out.numpy()[0] == 1


def test_dynamic_shared_memory_is_the_last_argument() -> None:
    """The bytes of dynamic shared memory go to a __local pointer behind the other arguments."""
    source = """
    __kernel void turn(__global int *x, __local int *room) {
      int i = get_local_id(0);
      room[i] = x[i];
      barrier(CLK_LOCAL_MEM_FENCE);
      x[i] = room[get_local_size(0) - 1 - i];
    }
    """
    turn = kernels(source, FunctionInfo("turn", ("handle",), ("threadIdx.x", SHARED)))["turn"]
    x = on_device(np.arange(8, dtype=np.int32))
    turn(x, 8, 32)
    assert x.numpy().tolist() == [7, 6, 5, 4, 3, 2, 1, 0]
    with pytest.raises(DeviceError, match="expected at most .* bytes of dynamic shared memory"):
        turn(x, 8, 2**31 - 1)


def test_dynamic_shared_memory_without_room_is_refused() -> None:
    """Row D11: a kernel that has no __local pointer takes none; no bytes are fine."""
    info = FunctionInfo("f", (), (SHARED,))
    kernel = kernels("__kernel void f() {}", info)["f"]
    kernel(0)
    with pytest.raises(DeviceError, match="expected a __local pointer as the last argument"):
        kernel(16)


# ---- What does not fit


def test_block_beyond_the_device_is_refused() -> None:
    """Row D11: a block that the device cannot run is refused with the device's limit and name."""
    x = on_device(np.ones(1, np.float32))
    kernel = kernels(SCALE_SOURCE, SCALE)["scale"]
    with pytest.raises(DeviceError, match="kernel 'scale': expected a threadIdx.x of at most") as e:
        kernel(x, 1.0, 1, 1, 2**31 - 1)
    assert e.value.device == "opencl:0"
    assert DEVICE.name in str(e.value)
    info = FunctionInfo("scale", SCALE.arg_types, GRID)
    with pytest.raises(DeviceError, match="expected a work-group of at most .* 512 x 512 x 512"):
        kernels(SCALE_SOURCE, info)["scale"](x, 1.0, 1, 1, 1, 1, 512, 512, 512)


@pytest.mark.parametrize(
    ("arg_types", "message"),
    [
        (("handle", "float32"), "its code takes 3 arguments, its signature says 2"),
        (("handle", "float32", "int32", "int32"), "takes 3 arguments, its signature says 4"),
        (("handle", "int32", "int32"), "argument 2 is 'float' in its code"),
        (("handle", "float64", "int32"), "argument 2 is 'float' in its code"),
        (("handle", "float32x4", "int32"), "argument 2 is 'float' in its code"),
        (("int64", "float32", "int32"), r"argument 1 is 'float\*' in its code"),
        (("handle", "handle", "int32"), "argument 2 is 'float' in its code"),
    ],
)
def test_signature_that_lies_is_refused(arg_types: tuple[str, ...], message: str) -> None:
    """Row D11: a signature that the code does not have is refused before the launch."""
    kernel = kernels(SCALE_SOURCE, FunctionInfo("scale", arg_types, ()))["scale"]
    values = {"handle": None, "float32x4": np.zeros(4, np.float32)}
    with pytest.raises(DeviceError, match=message):
        kernel(*(values.get(text, 1) for text in arg_types))


def test_local_argument_before_the_last_is_refused() -> None:
    """Row D11: a __local pointer that no launch tag fills is refused."""
    source = "__kernel void f(__local int *room, int n) {}"
    kernel = kernels(source, FunctionInfo("f", ("handle", "int32"), ()))["f"]
    with pytest.raises(DeviceError, match="argument 1 is __local memory in its code"):
        kernel(None, 1)


def test_kernel_that_the_code_lacks_is_named() -> None:
    """A name that the code does not have is refused, telling those that it has."""
    module = kernels(SCALE_SOURCE, FunctionInfo("scales", SCALE.arg_types, TAGS))
    with pytest.raises(DeviceError, match="kernel 'scales': the code has none of this name.*scale"):
        module["scales"](None, 1.0, 1, 1, 1)


def test_build_log_is_in_the_error() -> None:
    """Source that does not compile gives the compiler's own words, at each launch."""
    kernel = kernels("__kernel void f() { undeclared = 1; }", FunctionInfo("f"))["f"]
    for _ in range(2):
        with pytest.raises(
            DeviceError, match="not build code of format cl: CL_BUILD_PROGRAM_FAILURE"
        ) as e:
            kernel()
        assert "undeclared" in str(e.value)
        assert (e.value.device, e.value.code) == ("opencl:0", -11)


@pytest.mark.parametrize(
    ("code", "fmt", "message"),
    [
        (b"ptx", "ptx", "takes no code of format 'ptx', expected cl .*, clbin or xclbin"),
        (b"x", "", "takes no code of format '', expected cl"),
        (b"", "cl", "is given no code: it is empty"),
        (b"no binary", "clbin", r"refuses code of format clbin: CL_INVALID_BINARY \(code -42\)"),
        (b"no binary", "xclbin", "refuses code of format xclbin: CL_INVALID_BINARY"),
        (b"no words", "spirv", "is given code of format spirv that is none, or is cut short"),
        (b"\x03\x02\x23\x07", "spv", "that is none, or is cut short"),
    ],
)
def test_code_of_another_kind_is_refused(code: bytes, fmt: str, message: str) -> None:
    """Rows D12 and D14: code that is not what its format says is refused by kind."""
    kernel = DeviceModule("opencl", code, fmt, [FunctionInfo("f")])["f"]
    with pytest.raises(DeviceError, match=message):
        kernel()


@pytest.mark.parametrize("cut", [4, 1, 100])
def test_spirv_that_is_cut_short_is_refused(cut: int) -> None:
    """Row D12: SPIR-V that lacks its end never reaches a driver, which might end the process."""
    code = compile_spirv(FILL)[:-cut]
    info = FunctionInfo("fill", ("handle", "int32"), TAGS)
    with pytest.raises(DeviceError, match="that is none, or is cut short"):
        DeviceModule("opencl", code, "spirv", [info])["fill"](None, 1, 1, 1)


def test_spirv_runs_or_is_refused_by_name() -> None:
    """Row D12: a device takes SPIR-V, or is named with what it takes, as Debian's PoCL is."""
    info = FunctionInfo("fill", ("handle", "int32"), TAGS)
    kernel = DeviceModule("opencl", compile_spirv(FILL), "spirv", [info])["fill"]
    x = on_device(np.zeros(64, np.int32))
    try:
        kernel(x, 7, 4, 8)
    except DeviceError as error:
        assert f"'{DEVICE.name}' takes no SPIR-V" in str(error)
        assert "expected OpenCL C source (cl)" in str(error)
    else:
        assert x.numpy().tolist() == [7] * 32 + [0] * 32


def test_binary_runs() -> None:
    """A binary that the driver made is taken back."""
    module = DeviceModule("opencl", build_binary(SCALE_SOURCE), "clbin", [SCALE])
    x = on_device(np.ones(4, np.float32))
    module["scale"](x, 4.0, 4, 1, 4)
    assert x.numpy().tolist() == [4, 4, 4, 4]


# ---- Lifetimes, threads, processes


def test_function_keeps_its_code() -> None:
    """A kernel that outlives every name of its module still builds and runs."""
    scale = kernels(SCALE_SOURCE, SCALE)["scale"]
    gc.collect()
    x = on_device(np.ones(4, np.float32))
    scale(x, 4.0, 4, 1, 4)
    assert x.numpy()[3] == 4


def test_module_goes_with_its_last_function() -> None:
    """Nothing points back: a module and its code are gone at once, without the collector."""
    module = kernels(SCALE_SOURCE, SCALE)
    scale, gone = module["scale"], weakref.ref(module)
    scale(on_device(np.ones(1, np.float32)), 1.0, 1, 1, 1)
    del module
    assert gone() is not None
    del scale
    assert gone() is None


def test_loaded_library_launches(tmp_path: Path) -> None:
    """A module that travelled in a library launches there."""
    path = packer.export_library(kernels(SCALE_SOURCE, SCALE), tmp_path / "kernels.so")
    x = on_device(np.ones(4, np.float32))
    runtime.load(path)["scale"](x, 4.0, 4, 1, 4)
    assert x.numpy()[0] == 4


def test_threads_launch_one_kernel() -> None:
    """Threads that launch one kernel with arguments of their own do not mix them up."""
    scale = kernels(SCALE_SOURCE, SCALE)["scale"]
    arrays = [on_device(np.ones(64, np.float32)) for _ in range(8)]

    def work(x: runtime.Tensor, by: float) -> None:
        for _ in range(50):
            scale(x, by, 64, 1, 64)
            scale(x, 1 / by, 64, 1, 64)
        scale(x, by, 64, 1, 64)

    threads = [threading.Thread(target=work, args=(x, float(2**i))) for i, x in enumerate(arrays)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [2**i for i in range(8)] == [x.numpy()[63] for x in arrays]


def test_work_is_done_in_order() -> None:
    """Launches and copies of one device happen in the order in which they were asked for."""
    scale = kernels(SCALE_SOURCE, SCALE)["scale"]
    x = on_device(np.ones(1 << 16, np.float32))
    for _ in range(20):
        scale(x, 2.0, 1 << 16, 1 << 10, 64)
    y = runtime.empty((1 << 16,), "float32", DEVICE).copy_from(x)
    scale(x, 0.0, 1 << 16, 1 << 10, 64)
    assert (y.numpy() == 2.0**20).all()
    assert not x.numpy().any()


def test_fork_after_use_is_refused_in_the_child() -> None:
    """Row G9: a child of a process that used OpenCL gets an error and no hang."""
    code = """
import json, os, runtime
source = "__kernel void f(int n) {}"
module = runtime.DeviceModule("opencl", source, "cl", [runtime.FunctionInfo("f", ["int32"])])
kernel, x = module["f"], runtime.empty((4,), "float32", runtime.Device("opencl", 0))
kernel(1)
reader, writer = os.pipe()
child = os.fork()
if child == 0:
    said = []
    for use in (lambda: kernel(1), x.numpy, lambda: runtime.Device("opencl", 0).sync()):
        try:
            use()
            said.append("nothing")
        except runtime.DeviceError as error:
            said.append(str(error))
    del x, kernel, module
    os.write(writer, json.dumps(said).encode())
    os._exit(0)
os.close(writer)
os.waitpid(child, 0)
kernel(2)
runtime.Device("opencl", 0).sync()
print(os.read(reader, 10000).decode())
"""
    said = run_python(code)
    assert len(said) == 3
    assert all(text.startswith("opencl:0: OpenCL does not work after a fork") for text in said)


def test_child_may_use_what_its_parent_did_not() -> None:
    """Row G9: a process that was forked before OpenCL was used has it for itself."""
    code = """
import os, runtime
module = runtime.DeviceModule("opencl", "__kernel void f() {}", "cl", [runtime.FunctionInfo("f")])
kernel = module["f"]
child = os.fork()
if child == 0:
    kernel()
    runtime.Device("opencl", 0).sync()
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run_python(code) == 7


def test_device_that_is_not_there() -> None:
    """Row G18: a wrong index is refused, telling which devices there are."""
    with pytest.raises(DeviceError, match=r"opencl:99: no such device, found \d+ here: opencl:0 '"):
        runtime.empty((1,), "float32", Device("opencl", 99))


def test_memory_beyond_the_device() -> None:
    """Row G18: an allocation that the device refuses names size, device and code."""
    with pytest.raises(
        DeviceError, match=f"no buffer of {2**50} bytes on '.*CL_INVALID_BUFFER"
    ) as e:
        runtime.empty((2**50,), "int8", DEVICE)
    assert (e.value.device, e.value.code) == ("opencl:0", -61)
