"""empty and tensor: memory, data types, refusals, and who frees the memory."""

from __future__ import annotations

import array
import gc
import weakref
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import runtime
from runtime import Device, Tensor, empty, from_dlpack, tensor


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4), (2, 3, 5)])
@pytest.mark.parametrize("dtype", ["float32", "int8", "float64", "bool", "complex64"])
def test_empty(shape: tuple[int, ...], dtype: str) -> None:
    """A compact, writable tensor, aligned to 64 bytes."""
    made = empty(shape, dtype)
    assert type(made) is Tensor
    assert (made.shape, made.dtype, made.device) == (shape, dtype, Device("cpu"))
    assert not made.readonly
    view = made.numpy()
    view[...] = 1
    assert view.ctypes.data % 64 == 0
    assert np.array_equal(np.asarray(made), np.ones(shape, dtype))


@pytest.mark.parametrize("shape", [3, [3], (np.int64(3),), iter([3])])
def test_shape_as_one_writes_it(shape: Any) -> None:
    """A shape is a number, or any iterable of numbers."""
    assert empty(shape).shape == (3,)


@pytest.mark.parametrize(
    ("dtype", "name"),
    [("int8x4", "int8x4"), ((2, 16, 1), "float16"), (np.float64, "float64"),
     (np.dtype("i2"), "int16"), (np.dtype(ml_dtypes.bfloat16), "bfloat16"),
     (ml_dtypes.float8_e4m3fn, "float8_e4m3fn")],
)  # fmt: skip
def test_data_type_as_one_writes_it(dtype: Any, name: str) -> None:
    """A data type is a name, a triple, or NumPy's dtype."""
    assert empty(2, dtype).dtype == name


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (((-1,),), ValueError, r"^shape \(-1,\), expected no negative extent$"),
        (((1 << 40, 1 << 40),), ValueError, "beyond the address space"),
        (((1 << 62,),), ValueError, "beyond the address space"),
        ((1 << 56,), runtime.DeviceError, r"^cpu:0: no memory for 288230376151711744 bytes$"),
        (((0,) * 65,), ValueError, "expected at most 64 dimensions, found 65"),
        (((2.5,),), TypeError, "float"),
        ((("2",),), TypeError, "str"),
        ((2, "f16"), ValueError, "'f16' names no data type"),
        ((2, (2, 0, 1)), ValueError, "dtype_code, expected"),
        ((2, "float32", "gpu"), ValueError, "^device 'gpu': expected"),
        ((2, "float32", None), TypeError, "^device, expected a str like 'opencl:0'"),
    ],
)
def test_empty_that_cannot_be(
    arguments: tuple[Any, ...], error: type[Exception], message: str
) -> None:
    """The error is raised before the allocation, or by the device."""
    with pytest.raises(error, match=message):
        empty(*arguments)


def resident() -> int:
    """The bytes of memory that this process has."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def test_memory_is_freed_with_the_last_view() -> None:
    """The tensor may be freed first; its memory stays until the last view."""
    views: list[Callable[[Tensor], Any]] = [
        np.asarray, memoryview, lambda t: t.raw, lambda t: from_dlpack(t), np.from_dlpack,
    ]  # fmt: skip
    before = resident()
    for make_view in views:
        made = empty(64 << 20, "int8")
        made.numpy()[:] = 1
        gone = weakref.ref(made)
        view = make_view(made)
        del made
        gc.collect()
        assert np.asarray(view)[-1] == 1
        del view
        gc.collect()
        assert gone() is None
        assert resident() - before < 32 << 20


@pytest.mark.parametrize(
    "source", [b"abc", array.array("i", [1, 2]), np.zeros((2, 3)), np.zeros(()), np.zeros((0, 2))]
)
def test_tensor_is_a_view(source: Any) -> None:
    """A view of a buffer has its shape and data type, and is read-only if it is."""
    made = tensor(source)
    expected = np.asarray(memoryview(source))
    assert (made.shape, made.numpy().dtype) == (expected.shape, expected.dtype)
    assert made.readonly == memoryview(source).readonly
    assert made.nbytes == 0 or np.shares_memory(made.numpy(), expected)
    assert tensor(made) is made
    assert tensor(made, "cpu") is made


def test_tensor_of_ml_dtypes() -> None:
    """NumPy arrays without a buffer format are views, too."""
    source = np.arange(6).astype(ml_dtypes.bfloat16).reshape(2, 3)
    made = tensor(source)
    assert (made.dtype, made.shape) == ("bfloat16", (2, 3))
    assert np.shares_memory(made.numpy(), source)
    assert made.numpy().dtype == source.dtype
    assert tensor(np.array(2, ml_dtypes.bfloat16)).shape == ()


@pytest.mark.parametrize(
    ("source", "error"),
    [([1, 2], TypeError), (3, TypeError), (None, TypeError), ("text", TypeError),
     (np.zeros((2, 3)).T, ValueError), (np.zeros(2, "M8[s]"), ValueError),
     (np.zeros(2, "f4,i4"), TypeError), (np.array([None]), TypeError),
     (np.zeros(2, ">f4"), TypeError)],
)  # fmt: skip
def test_object_that_is_not_an_array_is_refused(source: Any, error: type[Exception]) -> None:
    """An array that cannot be viewed is refused too."""
    with pytest.raises((error, BufferError)):
        tensor(source)


def test_object_that_is_not_an_array_is_named() -> None:
    """A list is the usual mistake."""
    with pytest.raises(TypeError, match="expected an array, of a buffer .* found list"):
        tensor([1, 2])
