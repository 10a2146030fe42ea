"""from_dlpack: capsules, versions, packed elements, and the owner of the memory."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import runtime
from runtime import Device, empty, from_dlpack, tensor

from ...support import needs
from .strided_arrays import FORMS, strided

CUDA, VULKAN = 2, 7


class Producer:
    """An array of NumPy's with a capsule of the test's choice."""

    def __init__(self, array: Any, **changes: int) -> None:
        self.array, self.changes, self.asked = array, changes, None

    def __dlpack__(self, **asked: Any) -> Any:
        self.asked = asked
        capsule = self.array.__dlpack__(**asked)
        address = pointer(capsule, b"dltensor_versioned" if asked else b"dltensor")
        for name, value in self.changes.items():
            field = getattr(Versioned if asked else Unversioned, name)
            kind = ctypes.c_int64 if field.size == 8 else ctypes.c_int32
            kind.from_address(address + field.offset).value = value
        return capsule


class Old(Producer):
    """One that does not know max_version."""

    def __dlpack__(self) -> Any:  # type: ignore[override]
        return super().__dlpack__()


TENSOR = (
    ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
    ("ndim", ctypes.c_int32), ("dtype", ctypes.c_int32), ("shape", ctypes.c_void_p),
    ("strides", ctypes.c_void_p), ("byte_offset", ctypes.c_uint64),
)  # fmt: skip


class Unversioned(ctypes.Structure):
    """DLManagedTensor."""

    _fields_ = (*TENSOR, ("manager_ctx", ctypes.c_void_p), ("deleter", ctypes.c_void_p))


class Versioned(ctypes.Structure):
    """DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_int32), ("minor", ctypes.c_int32), ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p), ("flags", ctypes.c_uint64), *TENSOR,
    )  # fmt: skip


def pointer(capsule: object, name: bytes) -> int:
    """Return the pointer in a capsule."""
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype = ctypes.c_void_p
    address = get(ctypes.py_object(capsule), name)
    assert isinstance(address, int)
    return address


@pytest.mark.parametrize(
    ("form", "kind"),
    [*((form, Producer) for form in FORMS), ("compact", Old), ("transposed", Old)],
)
def test_dlpack_is_a_view(form: str, kind: type[Producer]) -> None:
    """The tensor has the strides, and the read-only flag if DLPack can express it."""
    source = strided(form)
    made = from_dlpack(kind(source))
    assert np.shares_memory(made.numpy(), source)
    assert made.numpy().strides == source.strides
    assert made.readonly != source.flags.writeable


def test_dlpack_asks_for_the_version_that_it_knows() -> None:
    """1.0, of which later minor versions are extensions."""
    producer = Producer(np.zeros(2))
    from_dlpack(producer)
    assert producer.asked == {"max_version": (1, 0)}


def test_capsule_is_taken_once() -> None:
    """The second request for a capsule is an error."""
    capsule = np.zeros(2).__dlpack__()
    assert from_dlpack(capsule).shape == (2,)
    with pytest.raises(TypeError, match="expected an unused 'dltensor' capsule, found <capsule"):
        from_dlpack(capsule)


def test_deleter_runs_when_the_last_view_is_freed() -> None:
    """The deleter runs once, and not before."""
    source = np.zeros(4)
    before = sys.getrefcount(source)
    made = from_dlpack(source)
    view = np.asarray(made)[1:]
    del made
    assert sys.getrefcount(source) == before + 1
    del view
    assert sys.getrefcount(source) == before


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"major": 2}, BufferError, r"expected DLPack version 1, found 2\.\d"),
        ({"ndim": -1}, ValueError, "found a tensor with a number of dimensions beyond 0 to 64"),
        ({"ndim": 65}, ValueError, "found a tensor with a number of dimensions beyond 0 to 64"),
        ({"data": 0}, ValueError, "found a tensor with no data"),
        ({"shape": 0}, ValueError, "found a tensor with no shape"),
        ({"dtype": 2}, ValueError, "found a tensor with a data type of 0 bits"),
    ],
)
def test_inconsistent_capsule_is_refused(
    changes: dict[str, int], error: type[Exception], message: str
) -> None:
    """The producer gets its tensor back through the deleter."""
    source = np.zeros((2, 3))
    before = sys.getrefcount(source)
    with pytest.raises(error, match=message):
        from_dlpack(Producer(source, **changes))
    assert sys.getrefcount(source) == before


INT4 = 0x1_04_00  # as TENSOR has a data type


def test_packed_elements_are_exchanged() -> None:
    """Elements of less than a byte are packed, as is DLPack's default, both ways."""
    source = np.arange(6, dtype="u1")
    made = from_dlpack(Producer(source, dtype=INT4))
    assert (made.dtype, made.shape, bytes(made.raw)) == ("int4", (6,), b"\0\1\2")
    again = from_dlpack(made.__dlpack__(max_version=(1, 0)))
    assert (again.dtype, bytes(again.raw)) == ("int4", b"\0\1\2")
    assert bytes(empty((6,), "int4").copy_from(again).raw) == b"\0\1\2"


def test_padded_elements_are_refused() -> None:
    """Padded elements of less than a byte are refused; whole bytes ignore the flag."""
    text = "expected packed elements of less than a byte, found padded ones; pack them"
    source = np.zeros(6, "u1")
    before = sys.getrefcount(source)
    with pytest.raises(BufferError, match=text):
        from_dlpack(Producer(source, dtype=INT4, flags=4))
    assert sys.getrefcount(source) == before
    assert from_dlpack(Producer(source, flags=4)).nbytes == 6


def test_packed_elements_with_strides_are_not_copied() -> None:
    """Single elements of less than a byte have no address."""
    made = from_dlpack(Producer(np.zeros((4, 4), "u1").T, dtype=INT4))
    with pytest.raises(ValueError, match="contiguous tensors, as their elements share bytes"):
        empty((4, 4), "int4").copy_from(made)


@pytest.mark.parametrize("extent", [-1, 1 << 62])
def test_inconsistent_shape_is_refused(extent: int) -> None:
    """Each product is checked for overflow."""
    source = np.zeros((2, 3))
    capsule = source.__dlpack__(max_version=(1, 0))
    managed = Versioned.from_address(pointer(capsule, b"dltensor_versioned"))
    ctypes.c_int64.from_address(managed.shape).value = extent
    with pytest.raises(ValueError, match="a negative extent, or a size beyond the address space"):
        from_dlpack(capsule)
    ctypes.c_int64.from_address(managed.shape).value = 2


def test_null_strides_are_compact() -> None:
    """DLPack before 1.2 permits NULL strides."""
    source = np.arange(6.0).reshape(2, 3)
    assert from_dlpack(Producer(source, strides=0)).numpy().tolist() == source.tolist()


def test_byte_offset_counts() -> None:
    """On the CPU the offset is part of the address."""
    source = np.arange(4.0)
    made = from_dlpack(Producer(source[:3], byte_offset=8))
    assert made.numpy().tolist() == [1, 2, 3]


def test_device_tensor_of_others_is_carried() -> None:
    """A device tensor can be passed; without a driver its elements cannot be read."""
    made = from_dlpack(Producer(np.zeros((2, 3), "f4"), device_type=VULKAN, byte_offset=8))
    assert (made.device, made.__dlpack_device__()) == (Device("vulkan"), (VULKAN, 0))
    assert repr(made) == "<Tensor float32[2, 3] on vulkan:0>"
    capsule = made.__dlpack__(max_version=(1, 0))
    managed = Versioned.from_address(pointer(capsule, b"dltensor_versioned"))
    assert managed.byte_offset == 8
    copies: list[Callable[[], object]] = [
        made.numpy, lambda: made.to("cpu"), lambda: made.copy_from(np.zeros((2, 3), "f4")),
        lambda: empty((2, 3)).copy_from(made), lambda: np.asarray(made),
        lambda: made.__dlpack__(dl_device=(1, 0)),
    ]  # fmt: skip
    for copy in copies:
        with pytest.raises(runtime.DeviceError, match="^vulkan: unsupported kind of device"):
            copy()
    with pytest.raises(ValueError, match="NumPy needs a copy of it"):
        np.asarray(made, copy=False)


@pytest.mark.parametrize("source", [3, None, [1], "text", object()])
def test_object_without_dlpack_is_refused(source: Any) -> None:
    """The message names the type."""
    with pytest.raises(TypeError, match="expected an array with __dlpack__, found "):
        from_dlpack(source)


def test_error_of_the_producer_is_its_own() -> None:
    """The producer's error arrives unchanged."""

    class Failing:
        def __dlpack__(self, **asked: Any) -> None:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        from_dlpack(Failing())


def test_pytorch() -> None:
    """A view of its memory; a tensor that DLPack cannot describe is refused."""
    torch = needs.module("torch", "torch")
    source = torch.arange(6.0).reshape(2, 3).T
    made = tensor(source)
    assert (made.shape, made.dtype) == ((3, 2), "float32")
    made.numpy()[0, 1] = 50
    assert source[0, 1] == 50
    assert torch.from_dlpack(made).data_ptr() == source.data_ptr()
    assert empty(3, torch.bfloat16).dtype == "bfloat16"
    assert empty((3, 2)).copy_from(source).numpy().tolist() == source.tolist()
    negative = torch.tensor([1 + 2j]).conj().imag
    for wrong in (negative, torch.tensor([1 + 2j]).conj(), torch.ones(1, requires_grad=True)):
        with pytest.raises(BufferError, match="negative|conj|require"):
            tensor(wrong)
    assert tensor(negative.resolve_neg()).numpy().tolist() == [-2]


def test_copy_is_made_on_request() -> None:
    """copy=True makes a separate, writable copy that is marked as one."""
    source = tensor(b"abc")
    capsule = source.__dlpack__(copy=True, max_version=(1, 0))
    assert Versioned.from_address(pointer(capsule, b"dltensor_versioned")).flags == 2
    copied = from_dlpack(capsule)
    assert (copied.readonly, bytes(copied.raw)) == (False, b"abc")
    assert copied.numpy().ctypes.data != source.numpy().ctypes.data
    assert np.from_dlpack(source, copy=True).flags.writeable


@pytest.mark.parametrize("stream", [None, -1, 1, 2, 1 << 40])
def test_streams_of_consumers(stream: int | None) -> None:
    """Memory on the CPU has no pending work on any stream."""
    assert from_dlpack(empty(2).__dlpack__(stream=stream)).shape == (2,)


def test_numpy_and_ours_share() -> None:
    """A tensor and an array that are made from each other share memory."""
    made = empty((2, 3))
    there = np.from_dlpack(made)
    there[...] = 5
    assert from_dlpack(there).numpy().tolist() == made.numpy().tolist() == [[5] * 3] * 2
