"""NDArrays in inconsistent bytes: each row pokes one field, and names the guard that refuses it."""

from __future__ import annotations

import struct

import pytest

import runtime
from runtime.tensors.ndarray import NDARRAY_MAGIC
from runtime.tensors.params import PARAMS_MAGIC

ARRAY_AT = 8 + 8 + 8 + 8 + 1 + 8  # after magic, reserved, one name of one letter, and the count


def ndarray(
    *, magic: int = NDARRAY_MAGIC, reserved: int = 0, device: tuple[int, int] = (1, 0),
    ndim: int | None = None, dtype: tuple[int, int, int] = (2, 32, 1),
    shape: tuple[int, ...] = (2, 3), nbytes: int = 24, data: bytes = bytes(24),
) -> bytes:  # fmt: skip
    """The bytes of an NDArray, as the fields say."""
    count = len(shape) if ndim is None else ndim
    head = struct.pack("<QQiiiBBH", magic, reserved, *device, count, *dtype)
    return head + struct.pack(f"<{len(shape)}qq", *shape, nbytes) + data


def params(array: bytes, *, names: tuple[bytes, ...] = (b"w",), count: int = 1) -> bytes:
    """A params dict file around it."""
    listed = b"".join(struct.pack("<Q", len(name)) + name for name in names)
    head = struct.pack("<QQQ", PARAMS_MAGIC, 0, len(names))
    return head + listed + struct.pack("<Q", count) + array


def test_well_formed() -> None:
    """The array that the rows below poke is valid."""
    tensor = runtime.load_param_dict(params(ndarray()))["w"]
    assert (tensor.shape, tensor.dtype, tensor.nbytes) == ((2, 3), "float32", 24)


@pytest.mark.parametrize(
    ("array", "at", "message"),
    [
        (ndarray(magic=1), 0, "NDArray magic 0x1, expected 0xdd5e40f096b4a13f"),
        (ndarray(device=(2, 0)), 16, "NDArray device_type 0x2, expected 0x1"),
        (ndarray(ndim=-1), 24, "ndim -1, expected 0 to 64"),
        (ndarray(ndim=2**31 - 1), 24, "ndim 2147483647, expected 0 to 64"),
        (ndarray(ndim=65), 24, "ndim 65, expected 0 to 64"),
        (ndarray(shape=(-1, 3)), 32, r"shape \(-1, 3\), expected extents of at least 0"),
        (ndarray(shape=(2**62, 4)), 48, "data_byte_size 24, expected 73786976294838206464"),
        (ndarray(shape=(2**62, 1)), 48, "data_byte_size 24, expected 18446744073709551616"),
        (ndarray(shape=(2**32, 2**32), nbytes=0), 48, "data_byte_size 0, expected 7378697"),
        (ndarray(dtype=(2, 32, 0)), 28, r"data type \(2, 32, 0\), expected a known code"),
        (ndarray(dtype=(2, 255, 1)), 28, r"data type \(2, 255, 1\), expected a known code"),
        (ndarray(nbytes=23), 48, "data_byte_size 23, expected 24"),
        (ndarray(nbytes=-1), 48, "data_byte_size -1, expected 24"),
        (ndarray(nbytes=2**63 - 1), 48, "data_byte_size 9223372036854775807, expected 24"),
        (ndarray(data=bytes(23)), 56, "23"),
        (ndarray(data=b""), 56, "0"),
        (ndarray(shape=(2**40, 2**10), nbytes=2**52), 56, "4503599627370496"),
    ],
)  # fmt: skip
def test_array_with_inconsistent_header_is_refused(array: bytes, at: int, message: str) -> None:
    """BlobFormatError at the field, before anything is allocated for it."""
    with pytest.raises(runtime.BlobFormatError, match=message) as caught:
        runtime.load_param_dict(params(array))
    assert caught.value.offset == ARRAY_AT + at


@pytest.mark.parametrize(
    ("names", "count", "message"),
    [
        ((b"w", b"w"), 2, r"array names 'w', 'w', expected distinct ones that are not empty"),
        ((b"",), 1, r"array names '', expected distinct ones that are not empty"),
        ((b"\xff",), 1, "UTF-8"),
        ((b"w",), 2**34, "17179869184 arrays for 1 names, expected as many"),
    ],
)
def test_inconsistent_names_are_refused(names: tuple[bytes, ...], count: int, message: str) -> None:
    """Each array has a unique name."""
    data = params(ndarray() * len(names), names=names, count=count)
    with pytest.raises(runtime.BlobFormatError, match=message):
        runtime.load_param_dict(data)


def test_wrong_count_of_names_is_refused() -> None:
    """2^34 names do not fit in the bytes that there are."""
    data = struct.pack("<QQQ", PARAMS_MAGIC, 0, 2**34) + bytes(100)
    with pytest.raises(runtime.BlobFormatError, match="17179869184"):
        runtime.load_param_dict(data)


@pytest.mark.parametrize(
    ("dtype", "nbytes", "is_usable"),
    [((0, 4, 1), 6, False), ((0, 4, 1), 3, True), ((17, 4, 1), 6, False), ((0, 4, 8), 24, True),
     ((0, 4, 8), 48, False), ((0, 4, 8), 6, False), ((0, 1, 1), 1, True), ((1, 1, 1), 6, True)],
)  # fmt: skip
def test_elements_of_less_than_a_byte(
    dtype: tuple[int, int, int], nbytes: int, is_usable: bool
) -> None:
    """TVM writes each element in a byte, a tensor packs them: others are carried unchanged."""
    data = params(ndarray(dtype=dtype, nbytes=nbytes, data=bytes(range(nbytes))))
    tensor = runtime.load_param_dict(data)["w"]
    assert bytes(tensor.raw) == bytes(range(nbytes))
    assert runtime.save_param_dict({"w": tensor}) == data
    if is_usable:
        assert tensor.nbytes == nbytes
    else:
        with pytest.raises(ValueError, match="incomplete: shape"):
            runtime.from_dlpack(tensor)


@pytest.mark.parametrize("shape", [(0, 2**62, 4), (2**62, 0)])
def test_an_extent_of_0_does_not_hide_the_others(shape: tuple[int, ...]) -> None:
    """The size of the other extents must be addressable."""
    with pytest.raises(runtime.BlobFormatError, match="data_byte_size 0, expected 0, of a shape"):
        runtime.load_param_dict(params(ndarray(shape=shape, nbytes=0, data=b"")))
