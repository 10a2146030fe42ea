"""OpenCL kernels on a real device: arguments, extents, shared memory."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest

import runtime
from runtime import DeviceError, FunctionInfo

from ...support.opencl_kernels import DEVICE, SCALE, SCALE_SOURCE, TAGS, kernels, on_device

pytestmark = pytest.mark.usefixtures("opencl_device")

GRID = ("blockIdx.x", "blockIdx.y", "blockIdx.z", "threadIdx.x", "threadIdx.y", "threadIdx.z")
SHARED = "tir.use_dyn_shared_memory"
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
    # A type that the code defines, since half cannot be an argument without an extension.
    ("float16", "bits", (-1.5, 65504.0, 5.960464477539063e-08, 0.1, 2047.5, 65519.9), "e"),
]  # fmt: skip


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
    """A vector is passed as an array of its lanes; one of three has the size of four."""
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
    """A vector has its lanes, its type, and no gaps."""
    info = FunctionInfo("f", ("int32x4",), ())
    with pytest.raises(ValueError, match="expected int32x4 as a contiguous array of 4 elements"):
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
    """An extent of 0, of the grid or of a block, runs no thread."""
    x = on_device(np.ones(2, np.float32))
    scale = kernels(SCALE_SOURCE, FunctionInfo("scale", SCALE.arg_types, GRID))["scale"]
    scale(x, 3.0, 2, *(int(axis != zero) for axis in range(6)))
    assert x.numpy().tolist() == [1, 1]
    scale(x, 3.0, 2, *(1,) * 6)
    assert x.numpy().tolist() == [3, 1]


def test_empty_tensor_is_not_written_beyond() -> None:
    """A launch over the 0 elements of a tensor leaves all memory as it was."""
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
        ((None, 1.0, 1, 0, -1), ValueError, "argument 5: expected 0 to 2147483647 for the launch"),
        ((None, 1.0, 1, 0, 2**31 - 1), DeviceError, "expected a threadIdx.x of at most"),
        ((np.ones(1, np.float32), 1.0, 1, 0, 1), ValueError, "expected a tensor on opencl"),
    ],
)
def test_empty_launch_is_checked_too(
    args: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    """Arguments of a launch of 0 blocks are refused as for any other launch."""
    with pytest.raises(error, match=message):
        kernels(SCALE_SOURCE, SCALE)["scale"](*args)


def test_kernel_without_arguments_or_tags_runs_once() -> None:
    """A kernel without tags is one work-item; one without tensors runs on the current device."""
    assert kernels("__kernel void f() {}", FunctionInfo("f"))["f"]() is None


def test_none_is_null() -> None:
    """None for a handle is a null pointer in the kernel."""
    source = "__kernel void f(__global int *x, __global int *out) { out[0] = x == 0; }"
    out = on_device(np.zeros(1, np.int32))
    kernels(source, FunctionInfo("f", ("handle", "handle"), ()))["f"](None, out)
    assert out.numpy()[0] == 1


def test_dynamic_shared_memory_is_the_last_argument() -> None:
    """The bytes of dynamic shared memory become a __local pointer after the other arguments."""
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
    """A kernel that has no __local pointer takes none; no bytes are fine."""
    info = FunctionInfo("f", (), (SHARED,))
    kernel = kernels("__kernel void f() {}", info)["f"]
    kernel(0)
    with pytest.raises(DeviceError, match="expected a __local pointer as the last argument"):
        kernel(16)


def test_block_beyond_the_device_is_refused() -> None:
    """A block that the device cannot run is refused with the device's limit and name."""
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
        (("handle", "float32"), "3 arguments in the code, 2 in the signature"),
        (("handle", "float32", "int32", "int32"), "3 arguments in the code, 4 in the signature"),
        (("handle", "int32", "int32"), "argument 2: 'float' in the code"),
        (("handle", "float64", "int32"), "argument 2: 'float' in the code"),
        (("handle", "float32x4", "int32"), "argument 2: 'float' in the code"),
        (("int64", "float32", "int32"), r"argument 1: 'float\*' in the code"),
        (("handle", "handle", "int32"), "argument 2: 'float' in the code"),
    ],
)
def test_inconsistent_signature_is_refused(arg_types: tuple[str, ...], message: str) -> None:
    """A signature that the code does not have is refused before the launch."""
    kernel = kernels(SCALE_SOURCE, FunctionInfo("scale", arg_types, ()))["scale"]
    values = {"handle": None, "float32x4": np.zeros(4, np.float32)}
    with pytest.raises(DeviceError, match=message):
        kernel(*(values.get(text, 1) for text in arg_types))


def test_local_argument_before_the_last_is_refused() -> None:
    """A __local pointer that no launch tag fills is refused."""
    source = "__kernel void f(__local int *room, int n) {}"
    kernel = kernels(source, FunctionInfo("f", ("handle", "int32"), ()))["f"]
    with pytest.raises(DeviceError, match="argument 1: __local memory in the code"):
        kernel(None, 1)
