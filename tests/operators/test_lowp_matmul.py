"""dso_op_lowp_matmul of 8-bit integers beside exact sums of NumPy, at every level."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from packer.operators import pack_lowp_matmul

from ..support.lowp import LowpMatmul, Result, address, lowp_matmul
from ..support.operators import Epilogue, assert_close

# rows, inner, columns: each extent below, at and above the sizes of words, tiles, blocks, panels.
SHAPES = [
    *((rows, 70, 45) for rows in (*range(1, 17), 29)),
    *((5, inner, 32) for inner in (1, 2, 3, 4, 5, 63, 64, 65, 1000)),
    *((6, 24, columns) for columns in (1, 7, 8, 16, 17, 31, 33, 64, 65)),
    (230, 900, 40),
]
KINDS = [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8"), ("int8", "uint8")]


def integers(dtype: str, *shape: int) -> np.ndarray:
    """All numbers of a type, the ends of its range among them."""
    limits = np.iinfo(dtype)
    made = np.random.default_rng(sum(shape)).integers(limits.min, limits.max + 1, shape)
    made.flat[: made.size // 3] = limits.min if made.size % 2 else limits.max
    return made.astype(dtype)


def exact(a: np.ndarray, b: np.ndarray, a_zero: int = 0, b_zero: object = 0) -> np.ndarray:
    """The sums in 64 bits."""
    return (a.astype(np.int64) - a_zero) @ (b.astype(np.int64) - np.asarray(b_zero, np.int64))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("types", KINDS, ids="-".join)
def test_sums_are_exact(library, shape, types) -> None:
    """With zeros of both factors, packed and not; the greatest products do not saturate."""
    rows, inner, columns = shape
    a, b = integers(types[0], 1, 1, rows, inner), integers(types[1], 1, 1, inner, columns)
    zeros = (int(a[0, 0, 0, 0]) // 2, int(b.max()) - 5)
    for packed in (None, pack_lowp_matmul(b)):
        found = lowp_matmul(library, a, b, Result(), zeros=zeros, packed=packed)
        assert np.array_equal(found, exact(a, b, *zeros))
        plain = lowp_matmul(library, a, b, Result(), packed=packed)
        assert np.array_equal(plain, exact(a, b))


def test_the_greatest_sums_are_exact(library) -> None:
    """255 * -128 in every place: pairs of 16 bits would saturate."""
    a, b = np.full((1, 1, 3, 640), 255, "u1"), np.full((1, 1, 640, 40), -128, "i1")
    b[..., 1::2] = 127
    assert np.array_equal(lowp_matmul(library, a, b, Result()), exact(a, b))


@pytest.mark.parametrize("types", KINDS, ids="-".join)
def test_each_column_has_its_zero(library, types) -> None:
    """As weights that are quantised per channel have it."""
    a, b = integers(types[0], 1, 2, 9, 130), integers(types[1], 1, 1, 130, 70)
    zeros = (3, integers(types[1], 70))
    for packed in (None, pack_lowp_matmul(b)):
        found = lowp_matmul(library, a, b, Result(), zeros=zeros, packed=packed)
        assert np.array_equal(found, exact(a, b, *zeros))


@pytest.mark.parametrize("transposed", ["a", "b", "ab"])
def test_strides_and_batches(library, transposed) -> None:
    """Transposed factors are read by their strides; a factor of one product serves all."""
    a, b = integers("uint8", 2, 3, 9, 37), integers("int8", 1, 3, 37, 50)
    if "a" in transposed:
        a = np.ascontiguousarray(a.swapaxes(2, 3)).swapaxes(2, 3)
    if "b" in transposed:
        b = np.ascontiguousarray(b.swapaxes(2, 3)).swapaxes(2, 3)
    for packed in (None, pack_lowp_matmul(b)):
        found = lowp_matmul(library, a, b, Result(), zeros=(128, -7), packed=packed)
        assert np.array_equal(found, exact(a, b, 128, -7))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize("columns", [32, 45])
@pytest.mark.parametrize("activation", ["none", "relu", "clip"])
def test_results_of_8_bits_are_rounded_and_limited(library, dtype, columns, activation) -> None:
    """Ties go to even; the scale is one or one per column."""
    a, b = integers("uint8", 1, 1, 21, 48), integers("int8", 1, 1, 48, columns)
    bias = np.arange(columns, dtype=np.int32) * 300 - 5000
    per_column = (np.arange(1, columns + 1) / (64 * columns)).astype(np.float32) / 16
    for scale in (np.array([2**-9], np.float32), per_column):
        zero = 7 if dtype == "int8" else 120
        result = Result(dtype, bias, scale, zero, Epilogue(activation=activation))
        found = lowp_matmul(library, a, b, result, zeros=(100, 0))
        assert np.array_equal(found, result.expected(exact(a, b, 100)))


@pytest.mark.parametrize("columns", [32, 45])
@pytest.mark.parametrize("activation", ["none", "gelu"])
def test_results_of_float32_have_the_epilogue_of_other_products(
    library, columns, activation
) -> None:
    """Scale, bias, residual, activation."""
    a, b = integers("uint8", 1, 1, 17, 21), integers("int8", 1, 1, 21, columns)
    random = np.random.default_rng(1)
    bias, residual = (
        random.normal(size=s).astype(np.float32) for s in (columns, (1, 1, 17, columns))
    )
    scale = random.uniform(1e-5, 1e-4, columns).astype(np.float32)
    result = Result("float32", None, scale, 0, Epilogue(bias, residual, activation))
    found = lowp_matmul(library, a, b, result, zeros=(131, 0))
    assert_close(found, result.expected(exact(a, b, 131)))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16"])
@pytest.mark.parametrize("columns", [1, 32, 100])
def test_packed_layout_is_the_same_in_c_and_python(library, dtype, columns) -> None:
    """An export packs with NumPy, a program with the C function."""
    from ..support.lowp import TYPES

    b = integers(dtype, 29, columns)
    expected = pack_lowp_matmul(b)
    struct = LowpMatmul(inner=29, columns=columns, b_type=TYPES[dtype])
    library.size_lowp_matmul.restype = ctypes.c_int64
    assert library.size_lowp_matmul(ctypes.byref(struct)) == expected.nbytes
    for source in (b, np.ascontiguousarray(b.T).T):
        packed = np.full_like(expected, 77)
        row, column = (ctypes.c_int64(stride // b.itemsize) for stride in source.strides)
        arguments = [ctypes.c_void_p(address(array)) for array in (source, packed)]
        library.pack_lowp_matmul(ctypes.byref(struct), arguments[0], row, column, arguments[1])
        assert packed.tobytes() == expected.tobytes()


def bfloat16(*shape: int) -> tuple[np.ndarray, np.ndarray]:
    """Random bfloat16 as uint16, and as float64."""
    floats = np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)
    bits = (floats.view(np.uint32) >> 16).astype(np.uint16)
    return bits, (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


@pytest.mark.parametrize("shape", [(1, 5, 7), (14, 33, 45), (31, 400, 64), (3, 64, 32)], ids=str)
@pytest.mark.parametrize("activation", ["none", "gelu"])
def test_products_of_bfloat16_have_sums_of_float32(library, shape, activation) -> None:
    """Results of float32 have its accuracy; results of bfloat16 are rounded to the nearest."""
    rows, inner, columns = shape
    (a, x), (b, y) = bfloat16(1, 1, rows, inner), bfloat16(1, 1, inner, columns)
    bias = np.linspace(-1, 1, columns).astype(np.float32)
    after = Epilogue(bias, activation=activation)
    expected = after.expected(x @ y, 3)
    for packed in (None, pack_lowp_matmul(b)):
        found = lowp_matmul(library, a, b, Result("float32", after=after), packed=packed)
        assert_close(found, expected)
        halves = lowp_matmul(library, a, b, Result("uint16", after=after), packed=packed)
        nearest = (found.view(np.uint32).astype(np.int64) + 0x8000) >> 16
        assert np.abs(halves.astype(np.int64) - nearest).max() == 0


def test_empty_products(library) -> None:
    """Nothing is written without rows or columns; sums of nothing are 0."""
    for rows, inner, columns in ((0, 4, 4), (4, 4, 0), (4, 0, 4)):
        a, b = np.zeros((1, 1, rows, inner), "u1"), np.zeros((1, 1, inner, columns), "i1")
        assert (lowp_matmul(library, a, b, Result(), zeros=(5, 6)) == 0).all()
