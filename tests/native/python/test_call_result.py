"""Tensors, dtypes and devices as results, and tensors as DLPack producers."""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import runtime
from runtime._core import Function, Library

from ...support import needs
from ...support.paths import C_SOURCES

Probe = Callable[[str], Function]
SOURCE = "functions.c"

FLOAT32, BFLOAT16, CPU, CUDA, CUDA_HOST = (2, 32), (4, 16), 1, 2, 3


@pytest.mark.parametrize(
    ("dtype", "name"), [((2, 32, 1), "float32"), ((0, 8, 4), "int8x4"), ((6, 8, 1), "bool")]
)
def test_dtype_result_is_its_name(probe: Probe, dtype: tuple[int, ...], name: str) -> None:
    """A DataType is returned as the name that runtime.dtype uses."""
    assert probe("of_dtype")(*dtype) == name


@pytest.mark.parametrize(
    ("device", "text"),
    [((1, 0), "cpu:0"), ((2, 3), "cuda:3"), ((16, 0), "hexagon:0"), ((99, 1), "device[99]:1"),
     ((0, 0), "device[0]:0"), ((-1, 0), "device[-1]:0")],
)  # fmt: skip
def test_device_result_is_a_device(probe: Probe, device: tuple[int, int], text: str) -> None:
    """Any device type and index is a valid device."""
    result = probe("of_device")(*device)
    assert (result, str(result)) == (runtime.Device(*device), text)


@pytest.mark.parametrize("device", [CPU, CUDA_HOST])
@pytest.mark.parametrize(
    ("stride", "values"), [(0, [[1, 2, 3], [4, 5, 6]]), (3, [[1, 2, 3], [4, 5, 6]]),
                           (5, [[1, 2, 3], [6, 7, 8]])],
)  # fmt: skip
def test_tensor_result(probe: Probe, device: int, stride: int, values: list[list[int]]) -> None:
    """A Tensor object becomes a Tensor over the same memory, whatever its strides."""
    tensor = probe("make_tensor")(*FLOAT32, device, stride)
    assert type(tensor) is runtime.Tensor
    assert (tensor.shape, tensor.dtype, tensor.nbytes) == ((2, 3), "float32", 24)
    assert (tensor.device.kind, tensor.readonly) == ("cpu" if device == CPU else "cuda_host", False)
    view = tensor.numpy()
    assert view.tolist() == values
    view[1, 1] = 50
    assert np.asarray(tensor)[1, 1] == 50
    del tensor, view
    assert probe("live_objects")() == 0


def test_views_keep_the_object_and_its_library(compile_library: Callable[..., Path]) -> None:
    """The last view releases the object, whose deleter still is there."""
    source = (C_SOURCES / "functions.c").read_text() + "/* for views */"
    path = str(compile_library(source))
    library = Library(path)
    make = library.function("make_tensor", None)
    assert make is not None
    views = [np.asarray(make(*FLOAT32, CPU, 5)), np.from_dlpack(make(*FLOAT32, CPU, 5))]
    del library, make
    gc.collect()
    assert [view.tolist() for view in views] == [[[1, 2, 3], [6, 7, 8]]] * 2
    with open("/proc/self/maps", encoding="utf-8") as maps:
        assert path in maps.read()
    views.clear()
    with open("/proc/self/maps", encoding="utf-8") as maps:
        assert path not in maps.read()


def test_tensor_result_can_be_passed_again(probe: Probe) -> None:
    """A result is an argument as any other array is."""
    tensor = probe("make_tensor")(*FLOAT32, CPU, 5)
    seen: list[Any] = []
    probe("apply")(lambda given: seen.append(given.numpy().copy()), tensor)
    assert seen[0].tolist() == [[1, 2, 3], [6, 7, 8]]


def test_tensor_given_to_a_callback_can_be_kept(probe: Probe) -> None:
    """A Tensor object is owned, unlike a tensor by pointer, and can be passed again."""
    kept: list[runtime.Tensor] = []
    probe("apply")(kept.append, probe("make_tensor")(*FLOAT32, CPU, 0))
    assert kept[0].numpy().tolist() == [[1, 2, 3], [4, 5, 6]]
    kept.clear()
    assert probe("live_objects")() == 0


def test_dtype_without_a_buffer_format(probe: Probe) -> None:
    """bfloat16 is read through DLPack, or as bytes."""
    tensor = probe("make_tensor")(*BFLOAT16, CPU, 0)
    with pytest.raises(BufferError, match=r"^this dtype has no buffer format; use \.raw$"):
        memoryview(tensor)
    assert (tensor.dtype, tensor.raw.nbytes) == ("bfloat16", 12)


def test_raw_needs_contiguous_memory(probe: Probe) -> None:
    """A tensor with strides, or on a device, has no contiguous bytes."""
    for stride, device in ((5, CPU), (0, CUDA)):
        tensor = probe("make_tensor")(*FLOAT32, device, stride)
        with pytest.raises(
            BufferError, match="^raw, expected a contiguous tensor in the memory of"
        ):
            _ = tensor.raw


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (0x00, "the tensor has strides"),
        (0x08, "the tensor has strides"),
        (0x38, "the tensor is not C contiguous"),
        (0x58, "the tensor is not Fortran contiguous"),
        (0x98, "the tensor is not contiguous"),
    ],
)
def test_buffer_requests_for_strides(probe: Probe, flags: int, expected: str) -> None:
    """A consumer that asks for contiguous memory is refused where there are gaps (PEP 3118)."""
    tensor = probe("make_tensor")(*FLOAT32, CPU, 5)
    with pytest.raises(BufferError, match=f"^{expected}$"):
        ctypes.pythonapi.PyObject_GetBuffer(
            ctypes.py_object(tensor), ctypes.create_string_buffer(80), flags
        )
    assert memoryview(tensor).strides == (20, 4)


@pytest.mark.parametrize(
    ("ndim", "extent", "stride", "expected"),
    [
        (65, 1, 1, "shape, expected at most 64 dimensions, found 65"),
        (-1, 1, 1, "shape, expected at most 64 dimensions, found -1"),
        (1, -1, 1, r"shape \(-1,\), expected no negative extent"),
        (2, 2**40, 1, "is beyond the address space"),
        (1, 2, 2**62, "a stride of 4611686018427387904 elements is beyond the address space"),
    ],
)
def test_inconsistent_tensor_is_released(
    probe: Probe, ndim: int, extent: int, stride: int, expected: str
) -> None:
    """Shape and strides of a library are checked as any input is."""
    with pytest.raises(ValueError, match=expected):
        probe("make_inconsistent")(ndim, extent, stride)
    assert probe("live_objects")() == 0


# ---- DLPack


def _tensor(**options: Any) -> runtime.Tensor:
    return runtime.Tensor(bytearray(24), (2, 3), "float32", **options)


def test_numpy_takes_it_without_a_copy() -> None:
    """Writes are seen on both sides, and the tensor is kept."""
    tensor = _tensor()
    view = np.from_dlpack(tensor)
    tensor.numpy()[0, 1] = 5
    assert view.tolist() == [[0, 5, 0], [0, 0, 0]]
    assert tensor.__dlpack_device__() == (CPU, 0)


def test_pytorch_takes_it_without_a_copy() -> None:
    """A data type without a buffer format is passed, too."""
    torch = needs.module("torch", "torch")
    tensor = runtime.Tensor(bytearray(b"\x80\x3f" * 4), (4,), "bfloat16")
    view = torch.from_dlpack(tensor)
    assert (view.dtype, view.tolist()) == (torch.bfloat16, [1.0] * 4)
    view[0] = 2
    assert bytes(tensor.raw[:2]) == b"\0\x40"


def test_read_only_tensor_has_the_flag() -> None:
    """DLPack 1.x has a flag for it; a consumer that cannot read the flag is refused."""
    tensor = runtime.Tensor(bytes(24), (2, 3), "float32")
    with pytest.raises(
        BufferError, match="^a read-only tensor, which DLPack before 1.0 cannot express"
    ):
        tensor.__dlpack__()
    assert "dltensor_versioned" in repr(tensor.__dlpack__(max_version=(1, 0)))
    if int(np.__version__[0]) >= 2:
        assert not np.from_dlpack(tensor).flags.writeable


@pytest.mark.parametrize(
    ("version", "name"), [(None, "dltensor"), ((0, 8), "dltensor"), ((1, 0), "dltensor_versioned"),
                          ((1, 3), "dltensor_versioned"), ((2, 0), "dltensor_versioned")],
)  # fmt: skip
def test_capsule_that_is_not_taken(version: tuple[int, int] | None, name: str) -> None:
    """Either form is released with its capsule."""
    tensor = _tensor()
    before = sys.getrefcount(tensor)
    capsule = tensor.__dlpack__(max_version=version)
    assert f'"{name}"' in repr(capsule)
    assert sys.getrefcount(tensor) == before + 1
    del capsule
    assert sys.getrefcount(tensor) == before


def test_requests_that_cannot_be_met() -> None:
    """Another device than the CPU, a forbidden copy, and missing data are refused."""
    tensor = _tensor()
    assert tensor.__dlpack__(dl_device=(CPU, 0), copy=False, stream=None) is not None
    with pytest.raises(BufferError, match="^the tensor is on another device"):
        tensor.__dlpack__(dl_device=(CUDA, 0))
    with pytest.raises(TypeError):
        tensor.__dlpack__(dl_device=3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="^incomplete"):
        runtime.Tensor(b"", (2, 3), "float32", incomplete=True).__dlpack__()
