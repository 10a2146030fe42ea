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
        *(("bits", c_int), ("block", c_int64), ("a", Floats), ("a_row", c_int64)),
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
