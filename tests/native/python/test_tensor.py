"""TensorBase: sizes, alignment, the buffer protocol, and who keeps the bytes."""

from __future__ import annotations

import ctypes
import gc
import sys
import weakref
from typing import Any

import numpy as np
import pytest

from runtime._core import TensorBase

F32, I64, BF16 = (2, 32, 1), (0, 64, 1), (4, 16, 1)


def _unaligned(nbytes: int) -> memoryview:
    """Read-only bytes 0, 1, 2, ... at an odd address."""
    return memoryview(b"x" + bytes(range(nbytes)))[1:]


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8",
                                   "c8", "c16", "?"])  # fmt: skip
@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3, 4)])
def test_numpy_sees_the_same_array(dtype: str, shape: tuple[int, ...]) -> None:
    """Each standard dtype passes through the buffer protocol, in place."""
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    code = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}[array.dtype.kind]
    tensor = TensorBase(array, shape, (code, array.itemsize * 8, 1))
    seen = np.asarray(tensor)
    assert (seen.dtype, seen.shape, seen.tolist()) == (array.dtype, shape, array.tolist())
    assert array.size == 0 or np.shares_memory(seen, array)


def test_facts() -> None:
    """Shape, dtype, size and read-only are as given."""
    tensor = TensorBase(bytearray(24), (2, 3), F32)
    assert (tensor.shape, tensor.dtype_code, tensor.nbytes) == ((2, 3), F32, 24)
    assert (tensor.readonly, tensor.raw.readonly) == (False, False)
    frozen = TensorBase(bytes(24), (2, 3), F32)
    assert (frozen.readonly, frozen.raw.readonly, memoryview(frozen).readonly) == (True,) * 3


def test_writable_bytes_are_written_through() -> None:
    """A view of the tensor is a view of the caller's bytes."""
    data = bytearray(8)
    memoryview(TensorBase(data, (2,), F32))[1] = 1.0
    assert data == b"\0\0\0\0\0\0\x80\x3f"


@pytest.mark.parametrize(
    ("dtype", "count", "nbytes"),
    [
        *((BF16, 3, 6), ((2, 32, 4), 3, 48), ((0, 4, 1), 3, 2), ((0, 4, 3), 3, 5)),
        *(((0, 1, 9), 1, 2), ((0, 1, 1), 65536, 8192), ((6, 1, 1), 9, 2), ((1, 1, 1), 9, 9)),
        *(((17, 4, 1), 3, 2), ((16, 6, 1), 4, 3), ((0, 4, 8), 3, 12), ((3, 64, 1), 2, 16)),
    ],
)
def test_size_of_other_dtypes(dtype: tuple[int, int, int], count: int, nbytes: int) -> None:
    """Elements of less than a byte are packed, but for the uint1 that TVM's bool once was."""
    tensor = TensorBase(bytes(nbytes), (count,), dtype)
    assert (tensor.nbytes, bytes(tensor.raw)) == (nbytes, bytes(nbytes))
    with pytest.raises(BufferError, match=r"^this dtype has no buffer format; use \.raw$"):
        memoryview(tensor)


@pytest.mark.parametrize(
    ("nbytes", "shape", "dtype", "expected"),
    [
        (23, (2, 3), F32, r"shape \(2, 3\) of 32-bit elements, expected 24 bytes, found 23"),
        (25, (2, 3), F32, "expected 24 bytes, found 25"),
        (0, (-1,), F32, r"shape \(-1,\), expected no negative extent"),
        (0, (1 << 62,), F32, "beyond the address space"),
        (0, (1 << 40, 1 << 40), F32, "beyond the address space"),
        (0, (0, 1 << 62, 1 << 62), F32, "beyond the address space"),
        (0, (1 << 64,), F32, "cannot fit"),
        (0, (0,) * 65, F32, "shape, expected at most 64 dimensions, found 65"),
        (0, (0,), (256, 8, 1), r"dtype_code, expected .*, found \(256, 8, 1\)"),
        (0, (0,), (0, 0, 1), "dtype_code, expected"),
        (0, (0,), (0, 256, 1), "dtype_code, expected"),
        (0, (0,), (0, 8, 0), "dtype_code, expected"),
        (0, (0,), (0, 8, 65536), "dtype_code, expected"),
    ],
)
def test_contradiction_is_refused(nbytes: int, shape: Any, dtype: Any, expected: str) -> None:
    """Bytes, shape and dtype must agree."""
    with pytest.raises(ValueError, match=expected):
        TensorBase(bytes(nbytes), shape, dtype)


@pytest.mark.parametrize("shape", [[2], 2, ("2",), (2.0,)])
def test_shape_of_another_type_is_refused(shape: Any) -> None:
    """A shape is a tuple of ints."""
    with pytest.raises(TypeError):
        TensorBase(bytes(8), shape, F32)


def test_non_contiguous_data_is_refused() -> None:
    """The exporter reports that its bytes are not contiguous."""
    with pytest.raises((BufferError, ValueError)):
        TensorBase(np.zeros((4, 4), "f4")[:, 1], (4,), F32)


def test_unaligned_read_only_data_is_copied_once() -> None:
    """The first use makes an aligned copy; raw stays unchanged."""
    tensor = TensorBase(_unaligned(16), (2,), I64)
    first, second = np.asarray(tensor), np.asarray(tensor)
    assert (first.ctypes.data % 64, first.ctypes.data) == (0, second.ctypes.data)
    assert first.tobytes() == bytes(tensor.raw) == bytes(range(16))
    assert np.frombuffer(tensor.raw, "u1").ctypes.data % 2 == 1


def test_aligned_data_is_not_copied() -> None:
    """Single bytes are always aligned."""
    data = _unaligned(16)
    seen = np.asarray(TensorBase(data, (16,), (1, 8, 1)))
    assert seen.ctypes.data == np.frombuffer(data, "u1").ctypes.data


def test_unaligned_writable_data_is_refused() -> None:
    """A copy would lose writes."""
    data = memoryview(bytearray(17))
    at = 1 if np.frombuffer(data, "u1").ctypes.data % 8 != 7 else 2
    with pytest.raises(
        ValueError, match=r"^writable data at 0x[0-9a-f]+, expected alignment to 8 "
    ):
        TensorBase(data[at : at + 8], (1,), I64)


def test_incomplete_tensor_has_only_raw() -> None:
    """An array cut short by its writer can be looked at, not used."""
    tensor = TensorBase(b"1234", (2,), F32, incomplete=True)
    assert (tensor.nbytes, bytes(tensor.raw)) == (8, b"1234")
    with pytest.raises(ValueError, match=r"^incomplete: shape \(2,\), expected 8 bytes, found 4"):
        memoryview(tensor)
    with pytest.raises(ValueError, match="expected other than 8 bytes, found 8"):
        TensorBase(bytes(8), (2,), F32, incomplete=True)


def _request(tensor: TensorBase, flags: int) -> None:
    view = ctypes.create_string_buffer(80)  # Py_buffer
    ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(tensor), view, flags)
    ctypes.pythonapi.PyBuffer_Release(view)


def test_buffer_requests() -> None:
    """Writable and Fortran requests are granted only where they hold (PEP 3118 flags)."""
    simple, writable, f_contiguous = 0x0, 0x1, 0x58
    frozen, line = TensorBase(bytes(24), (2, 3), F32), TensorBase(bytearray(12), (1, 3), F32)
    _request(frozen, simple)
    _request(line, writable | f_contiguous)
    with pytest.raises(BufferError, match=r"^the tensor is read-only$"):
        _request(frozen, writable)
    with pytest.raises(BufferError, match=r"^the tensor is not Fortran contiguous$"):
        _request(frozen, f_contiguous)
    assert memoryview(frozen).strides == (12, 4)


def test_views_keep_the_bytes() -> None:
    """A view keeps the tensor, and the tensor the buffer; the last view frees all."""
    data = bytearray(8)
    tensor = TensorBase(data, (2,), F32)
    gone = weakref.ref(tensor)
    views = [memoryview(tensor), tensor.raw]
    del tensor
    assert gone() is not None
    with pytest.raises(BufferError):
        data.append(1)
    del views
    assert gone() is None
    data.append(1)


def test_construction_leaves_no_reference() -> None:
    """Good and refused tensors release the references that they took."""
    data, shape = bytes(8), (2, 1)
    before = sys.getrefcount(data), sys.getrefcount(shape)
    for _ in range(20):
        memoryview(TensorBase(data, shape, F32))
        for bad_shape, bad_dtype in (((3,), F32), (shape, (0, 0, 1)), (("x",), F32)):
            with pytest.raises((ValueError, TypeError)):
                TensorBase(data, bad_shape, bad_dtype)  # type: ignore[arg-type]
    assert (sys.getrefcount(data), sys.getrefcount(shape)) == before


def test_subclass_in_a_cycle_is_collected() -> None:
    """A subclass with attributes takes part in garbage collection."""

    class Tensor(TensorBase):
        me: object = None

    tensor = Tensor(bytes(8), (2,), F32)
    tensor.me = tensor
    gone = weakref.ref(tensor)
    del tensor
    gc.collect()
    assert gone() is None


def test_garbage_over_a_memoryview_is_collected() -> None:
    """The collector meets tensor and view in one heap of garbage, and leaves the view to us."""

    class Node:
        content: object = None

    data = bytearray(9)
    view = memoryview(data)[1:]  # older than the cycle, so that the collector clears it first
    node = Node()
    node.content = (node, view, TensorBase(view, (8,), (1, 8, 1)))
    del node, view
    gc.collect()
    data.append(1)
