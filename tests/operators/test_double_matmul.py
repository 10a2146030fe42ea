"""dso_op_double_matmul beside NumPy, at every level of this machine."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_double, c_int64

import numpy as np
import pytest

from ..support.operators import Pair, steps

Doubles = POINTER(c_double)


class DoubleMatmul(Structure):
    """struct dso_op_double_matmul."""

    _fields_ = [
        ("batch", Pair),
        *((name, c_int64) for name in ("rows", "inner", "columns")),
        *(("a", Doubles), ("a_batch", Pair), ("a_row", c_int64), ("a_column", c_int64)),
        *(("b", Doubles), ("b_batch", Pair), ("b_row", c_int64), ("b_column", c_int64)),
        *(("out", Doubles), ("out_batch", Pair), ("out_row", c_int64)),
    ]


def multiply(library: ctypes.CDLL, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Multiply arrays of 4 dimensions, the first two of which are a batch; strides are kept."""
    batch = np.broadcast_shapes(a.shape[:2], b.shape[:2])
    a, b = (np.broadcast_to(x, (*batch, *x.shape[2:])) for x in (a, b))
    out = np.full((*batch, a.shape[2], b.shape[3]), np.nan)
    struct = DoubleMatmul(Pair(*batch), *a.shape[2:], b.shape[3])
    for name, array in (("a", a), ("b", b), ("out", out)):
        setattr(struct, name, array.ctypes.data_as(Doubles))
        setattr(struct, f"{name}_batch", Pair(*steps(array)[:2]))
        for field, step in zip(("row", "column"), steps(array)[2:], strict=True):
            if name != "out" or field == "row":
                setattr(struct, f"{name}_{field}", step)
    assert library.run_double_matmul(ctypes.byref(struct)) == 0
    return out


@pytest.mark.parametrize("transposed", ["", "ab"])
@pytest.mark.parametrize(("rows", "inner"), [(1, 37), (3, 0), (12, 400), (29, 37), (200, 400)])
@pytest.mark.parametrize("columns", [1, 21, 64])
def test_product_is_numpys(library, rows, inner, columns, transposed) -> None:
    """Of any extents and strides, with batches that are broadcast."""
    random = np.random.default_rng(rows)
    a, b = random.normal(size=(2, 1, rows, inner)), random.normal(size=(1, 3, inner, columns))
    if "a" in transposed:
        a = np.ascontiguousarray(a.swapaxes(2, 3)).swapaxes(2, 3)
    if "b" in transposed:
        b = np.ascontiguousarray(b.swapaxes(2, 3)).swapaxes(2, 3)
    np.testing.assert_allclose(multiply(library, a, b), a @ b, rtol=0, atol=1e-12)
