"""Arrays by the buffer protocol: data types, strides, read-only arrays, tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from runtime._core import TensorBase

from .dlpack_producers import OnlyDLPack, OnlyOldDLPack, Probe

SOURCE = "probe.c"


@pytest.mark.parametrize(
    ("dtype", "code", "bits"),
    [
        *((f"i{n}", 0, 8 * n) for n in (1, 2, 4, 8)),
        *((f"u{n}", 1, 8 * n) for n in (1, 2, 4, 8)),
        *((f"f{n}", 2, 8 * n) for n in (2, 4, 8)),
        *((f"c{n}", 5, 8 * n) for n in (8, 16)),
        ("g", 2, 128),
        ("?", 6, 8),
        ("l", 0, 64),
        ("<i4", 0, 32),
        (">i1", 0, 8),
    ],
)
def test_array_dtype(probe: Probe, dtype: str, code: int, bits: int) -> None:
    """A NumPy dtype has the DLPack dtype of the same meaning."""
    assert probe("dtype")(np.zeros(3, dtype)) == code * 1000000 + bits * 1000 + 1


@pytest.mark.parametrize("dtype", [">f4", ">u2", "S3", "U2", "V4", "O", [("a", "f4")]])
def test_foreign_dtype_is_refused(probe: Probe, dtype: Any) -> None:
    """Foreign byte order, structs and text have no DLPack dtype."""
    with pytest.raises(
        TypeError, match=r"^dtype: argument 1: unsupported dtype, expected a native"
    ):
        probe("dtype")(np.zeros(3, dtype))


def test_dtype_without_buffer_is_refused(probe: Probe) -> None:
    """The exporter's error is the cause."""
    with pytest.raises(TypeError, match="expected an array with strides and a dtype") as caught:
        probe("dtype")(np.zeros(3, "M8[s]"))
    assert isinstance(caught.value.__cause__, ValueError)


def test_strides_count_elements(probe: Probe) -> None:
    """Shape, strides, data pointer and device are the array's own."""
    whole = np.arange(24, dtype="i2").reshape(4, 6)
    view = whole[::-2, 1::2]
    extent, stride = probe("extent"), probe("stride")
    assert (probe("ndim")(view), extent(view, 0), extent(view, 1)) == (2, 2, 3)
    assert (stride(view, 0), stride(view, 1)) == (-12, 2)
    assert probe("address")(view) == view.ctypes.data
    assert probe("device")(view) == 1


def test_many_dimensions(probe: Probe) -> None:
    """Arrays have up to NumPy's limit of dimensions, beyond the room that a call reserves."""
    ndim = 32
    array = np.zeros((1,) * (ndim - 1) + (5,), "f8")
    assert (probe("ndim")(array), probe("stride")(array, ndim - 1)) == (ndim, 1)


def test_strides_between_elements_are_refused(probe: Probe) -> None:
    """A field of a packed struct is not at a multiple of the element."""
    field = np.zeros(3, dtype=[("a", "i1"), ("b", "f4")])["b"]
    with pytest.raises(ValueError, match="expected strides of whole elements, found 5 bytes"):
        probe("stride")(field, 0)


def test_written_array_is_the_callers_own(probe: Probe) -> None:
    """No copy is made: the function writes into the array, over its strides."""
    values = np.ones(6, "f4")
    probe("scale")(values[::2], 3.0)
    assert values.tolist() == [3, 1, 3, 1, 3, 1]
    probe("scale")(OnlyDLPack(values), 2.0)
    assert values.tolist() == [6, 2, 6, 2, 6, 2]


def _read_only() -> np.ndarray[Any, Any]:
    values = np.ones(4, "f4")
    values.flags.writeable = False
    return values


@pytest.mark.parametrize(
    "value",
    [
        _read_only(),
        memoryview(_read_only()),
        TensorBase(bytes(16), (4,), (2, 32, 1)),
    ],
    ids=["buffer", "memoryview", "TensorBase"],
)
def test_read_only_array_is_refused_where_it_is_written(probe: Probe, value: object) -> None:
    """`float *` needs a writable array, `const float *` does not."""
    expected = r"^scale: argument 1 'y': expected a writable (array|tensor), found a read-only one"
    with pytest.raises(ValueError, match=expected):
        probe("scale")(value, 2.0)
    assert probe("first")(value) in (0.0, 1.0)


def test_read_only_dlpack_is_refused_where_it_is_written(probe: Probe) -> None:
    """The flag of DLPack 1.x states it; in older versions the producer refuses."""
    expected = r"^scale: argument 1 'y': expected (a writable array|an array that can be shared), "
    with pytest.raises(ValueError, match=expected):
        probe("scale")(OnlyDLPack(_read_only()), 2.0)
    with pytest.raises(ValueError, match="expected an array that can be shared"):
        probe("scale")(OnlyOldDLPack(_read_only()), 2.0)


def test_tensor_is_passed_as_its_dltensor(probe: Probe) -> None:
    """Unaligned bytes are aligned first; an incomplete tensor is refused."""
    tensor = TensorBase(memoryview(b"x" + bytes(16))[1:], (2,), (0, 64, 1))
    address = probe("address")(tensor)
    assert (address % 64, address) == (0, np.asarray(tensor).ctypes.data)
    assert (probe("dtype")(tensor), probe("extent")(tensor, 0), probe("stride")(tensor, 0)) == (
        64001, 2, 1,
    )  # fmt: skip
    cut = TensorBase(b"1234", (2,), (0, 64, 1), incomplete=True)
    with pytest.raises(
        ValueError, match=r"^ndim: argument 1: expected a complete tensor"
    ) as caught:
        probe("ndim")(cut)
    assert "incomplete: shape (2,)" in str(caught.value.__cause__)


def test_array_is_released_after_the_call(probe: Probe) -> None:
    """A bytearray can be resized after a call, successful or not."""
    data = bytearray(8)
    probe("ndim")(data)
    with pytest.raises(TypeError):
        probe("add")(data, object())
    with pytest.raises(RuntimeError):
        probe("fail_silently")(data)
    data.append(1)
