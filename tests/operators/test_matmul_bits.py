"""dso_op_matmul_bits beside NumPy in double precision, at every level of this machine."""

from __future__ import annotations

from ctypes import POINTER, Structure, byref, c_float, c_int, c_int64, c_void_p

import numpy as np
import pytest

from packer.operators import matmul_bits_shape, pack_matmul_bits, quantize_matmul

from ..support.operators import After, Floats, assert_close, pointer


class MatmulBits(Structure):
    """struct dso_op_matmul_bits."""

    _fields_ = [
        *((name, c_int64) for name in ("rows", "inner", "columns")),
        *((name, c_int) for name in ("bits", "activation_bits", "has_zeros")),
        *(("block", c_int64), ("a", Floats), ("a_row", c_int64)),
        *(("b", c_void_p), ("out", Floats), ("out_row", c_int64)),
        ("after", After),
        ("workspace", POINTER(c_float)),
    ]


def multiply(library, a: np.ndarray, packed: np.ndarray, columns: int, **numbers) -> np.ndarray:
    """Call the operator, with memory that it fills before."""
    rows, inner = a.shape
    out = np.full((rows, columns), np.nan, np.float32)
    given = MatmulBits(rows=rows, inner=inner, columns=columns, a=pointer(a), a_row=inner)
    given.b, given.out, given.out_row = packed.ctypes.data, pointer(out), columns
    for name, value in numbers.items():
        setattr(given, name, value)
    library.room_matmul_bits.restype = c_int64
    room = np.full(library.room_matmul_bits(byref(given)) + 1, np.nan, np.float32)
    given.workspace = pointer(room)
    assert library.run_matmul_bits(byref(given)) == 0
    return out


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(
    ("rows", "inner", "columns", "block"),
    [
        (1, 1, 1, 16),
        (1, 64, 32, 32),
        (1, 100, 70, 32),
        (2, 33, 40, 16),
        (15, 300, 33, 128),
        (40, 520, 96, 256),
        (300, 70, 40, 32),
        (3, 70, 64, 64),
        (0, 8, 8, 32),
    ],
)
def test_product_is_numpys(library, bits, rows, inner, columns, block) -> None:
    """Of the integers times their scales; below, at and above the sizes of panels and blocks."""
    random = np.random.default_rng(rows + inner + columns)
    a = random.normal(size=(rows, inner)).astype(np.float32)
    b = random.normal(size=(inner, columns)).astype(np.float32)
    integers, scales = quantize_matmul(b, bits, block)
    packed = pack_matmul_bits(integers, scales, bits, block)
    assert packed.shape == matmul_bits_shape(b.shape, bits, block)
    weight = integers * np.repeat(scales.astype(float), block, 0)[:inner]
    bias = random.normal(size=columns).astype(np.float32)
    found = multiply(
        library, a, packed, columns, bits=bits, block=block, after=After(bias=pointer(bias))
    )
    assert_close(found, a.astype(float) @ weight + bias)


def of_integers(
    a: np.ndarray, integers: np.ndarray, scales: np.ndarray, zeros: np.ndarray, block: int
) -> np.ndarray:
    """Products of integers, exact for each block; then float32, step after step."""
    pad = [(0, -len(integers) % block), (0, 0)]
    b = np.pad(integers.astype(np.int64), pad).reshape(-1, block, integers.shape[1])
    blocks = np.pad(a, [(0, 0), pad[0]]).reshape(len(a), -1, block)
    most = np.abs(blocks).max(2, keepdims=True)
    counts = most >= np.float32(2**-100)
    inverse = np.where(counts, np.float32(127) / np.where(counts, most, 1), 0).astype(np.float32)
    factors = np.where(counts, most / np.float32(127), 0).astype(np.float32)
    rounded = np.rint(blocks * inverse).astype(np.int64)
    sums = np.zeros((len(a), integers.shape[1]), np.float32)
    for k in range(len(b)):
        exact = (rounded[:, k] @ (b[k] - zeros[k])).astype(np.float32)
        sums += exact * factors[:, k] * scales[k]
    return sums


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize(
    ("rows", "inner", "columns", "block"),
    [(1, 100, 70, 32), (7, 300, 33, 16), (9, 520, 96, 256), (4, 5, 5, 128)],
)
def test_integers_have_the_bits_of_integers(
    library, bits, has_zeros, rows, inner, columns, block
) -> None:
    """Of each level: sums of a block are exact, and scales are multiplied in one order."""
    random = np.random.default_rng(rows + inner)
    a = random.normal(size=(rows, inner)).astype(np.float32)
    a[0, :block] *= 1e-31  # counts as 0
    low, high = (-8, 8) if bits == 4 else (-128, 128)
    integers = random.integers(low, high, (inner, columns)).astype(np.int8)
    scales = random.normal(size=(-(-inner // block), columns)).astype(np.float32)
    zeros = random.integers(low, high, scales.shape) * has_zeros
    packed = pack_matmul_bits(integers, scales, bits, block, zeros if has_zeros else None)
    numbers = {"bits": bits, "block": block, "has_zeros": has_zeros}
    found = multiply(library, a, packed, columns, activation_bits=8, **numbers)
    assert np.array_equal(found, of_integers(a, integers, scales, zeros, block))
    weight = (integers - np.repeat(zeros, block, 0)[:inner]) * np.repeat(scales, block, 0)[:inner]
    for some in (a, a[-1:]):
        found = multiply(library, some, packed, columns, **numbers)
        assert_close(found, some.astype(float) @ weight)
    last = column(library, packed, inner, columns - 1, **numbers)
    assert np.array_equal(last, weight[:, -1].astype(np.float32))


def column(library, packed: np.ndarray, inner: int, index: int, **numbers) -> np.ndarray:
    """A column of a weight, as float32."""
    out = np.full(inner, np.nan, np.float32)
    given = MatmulBits(inner=inner, b=packed.ctypes.data, **numbers)
    library.column_matmul_bits(byref(given), c_int64(index), pointer(out))
    return out


@pytest.mark.parametrize("activation_bits", [0, 8])
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_infinities_and_nans_are_not_rounded(library, value, activation_bits) -> None:
    """A sum with one is NaN, or infinite in float32; other rows are not changed."""
    random = np.random.default_rng(1)
    a = random.normal(size=(2, 40)).astype(np.float32)
    a[0, 35] = value
    packed = pack_matmul_bits(*quantize_matmul(random.normal(size=(40, 9)), 8), 8)
    numbers = {"bits": 8, "block": 32, "activation_bits": activation_bits}
    both = multiply(library, a, packed, 9, **numbers)
    alone = multiply(library, a[:1], packed, 9, **numbers)
    assert not np.isfinite(both[0]).any()
    assert not np.isfinite(alone).any()
    assert np.isfinite(both[1]).all()


@pytest.mark.parametrize("bits", [4, 8])
def test_rounding_is_to_the_nearest(bits) -> None:
    """No element is further from its integer than half a scale; blocks of zeros stay zeros."""
    b = np.random.default_rng(0).normal(size=(70, 9)).astype(np.float32)
    b[:32, 3] = 0
    integers, scales = quantize_matmul(b, bits)
    step = np.repeat(scales, 32, 0)[:70]
    assert np.abs(integers * step - b).max() <= step.max() / 2 * 1.0001
    assert (np.abs(integers * step - b) <= step / 2 * 1.0001).all()
    assert not integers[:32, 3].any()
    assert np.abs(integers).max() == (7 if bits == 4 else 127)


@pytest.mark.parametrize(
    ("bits", "block", "value", "refused"),
    [
        (3, 32, 1.0, "bits, expected 4 or 8, found 3"),
        (4, 33, 1.0, "block, expected one of .*, found 33"),
        (4, 32, np.inf, "expected finite numbers"),
    ],
)
def test_what_cannot_be_rounded_is_refused(bits, block, value, refused) -> None:
    """Before a wrong weight is made."""
    with pytest.raises(ValueError, match=refused):
        quantize_matmul(np.full((4, 4), value, np.float32), bits, block)


@pytest.mark.parametrize(
    ("scales", "zeros", "refused"),
    [
        (np.full((1, 4), np.nan), None, "scales, expected finite numbers of shape"),
        (np.ones((2, 4)), None, r"scales, .* shape \(1, 4\), found shape \(2, 4\)"),
        (np.ones((1, 4)), np.full((1, 4), np.inf), "zeros, expected finite numbers"),
        (np.ones((1, 4)), np.ones((1, 3)), r"zeros, .* shape \(1, 4\), found shape \(1, 3\)"),
    ],
)
def test_scales_and_zeros_are_checked(scales, zeros, refused) -> None:
    """One of each for a block and a column, all of them finite."""
    with pytest.raises(ValueError, match=refused):
        pack_matmul_bits(np.ones((4, 4), np.int8), scales, 8, 32, zeros)
