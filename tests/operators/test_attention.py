"""dso_op_attention beside NumPy in double precision, at every level of this machine."""

from __future__ import annotations

import numpy as np
import pytest

from ..support.attention import attend, expected
from ..support.operators import assert_close

# batch, heads, rows, keys, size, size of a value
SHAPES = [
    (1, 1, 1, 1, 1, 1),
    (1, 2, 13, 31, 16, 16),
    (2, 3, 14, 32, 20, 20),
    (1, 2, 15, 33, 64, 64),
    (1, 1, 29, 100, 40, 72),
    (1, 1, 3, 512, 32, 32),
    (1, 1, 5, 513, 8, 33),
    (1, 1, 40, 1300, 24, 32),
    (1, 1, 4, 0, 8, 8),
    (2, 3, 1, 1, 5, 7),
    (2, 2, 1, 600, 64, 100),
    (1, 1, 1, 0, 8, 8),
]


def arrays(shape: tuple[int, ...], kv_heads: int = 0) -> list[np.ndarray]:
    """Random q, k and v, the same for the same shape."""
    batch, heads, rows, keys, size, value_size = shape
    random = np.random.default_rng(sum(shape))
    kv = kv_heads or heads
    shapes = ((batch, heads, rows, size), (batch, kv, keys, size), (batch, kv, keys, value_size))
    return [random.normal(size=s).astype(np.float32) * 2 for s in shapes]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_attention_is_numpys(library, shape) -> None:
    """Below, at and above the sizes of tiles, panels and the keys that are taken at once."""
    q, k, v = arrays(shape)
    assert_close(attend(library, q, k, v), expected(q, k, v))


@pytest.mark.parametrize("past", [0, 1, 30, 700])
@pytest.mark.parametrize(
    "shape", [(1, 2, 20, 50, 16, 32), (1, 1, 600, 700, 8, 8), (1, 2, 1, 400, 8, 8)], ids=str
)
def test_causal_rows_see_no_later_key(library, shape, past) -> None:
    """A row sees the keys up to its own number, and the keys of the past."""
    q, k, v = arrays(shape)
    found = attend(library, q, k, v, is_causal=True, past=past)
    assert_close(found, expected(q, k, v, is_causal=True, past=past))


@pytest.mark.parametrize("rows", [1, 33])
@pytest.mark.parametrize("extents", [(1, 1, 1), (2, 1, 1), (1, 3, 1), (2, 3, 0)], ids=str)
def test_mask_is_added_and_broadcast(library, extents, rows) -> None:
    """A distance of 0 uses the same part of the mask again."""
    q, k, v = arrays((2, 3, rows, 70, 16, 16))
    extents = tuple(extent or rows for extent in extents)
    mask = np.random.default_rng(1).normal(size=(*extents, 70)).astype(np.float32) * 3
    mask[..., 5:9] = -np.inf
    assert_close(attend(library, q, k, v, mask), expected(q, k, v, mask))


def test_row_that_sees_no_key_is_zero(library) -> None:
    """Also when all of the first keys that are taken at once are hidden."""
    q, k, v = arrays((1, 1, 6, 900, 8, 40))
    mask = np.zeros((1, 1, 6, 900), np.float32)
    mask[0, 0, 2] = -np.inf
    mask[0, 0, 3, :600] = -np.inf
    mask[0, 0, 4, 500:] = -np.inf
    found = attend(library, q, k, v, mask)
    assert (found[0, 0, 2] == 0).all()
    assert_close(found, expected(q, k, v, mask))


@pytest.mark.parametrize("rows", [1, 10])
@pytest.mark.parametrize("kv_heads", [1, 2, 3, 6])
def test_heads_share_keys_and_values(library, kv_heads, rows) -> None:
    """Grouped-query attention."""
    q, k, v = arrays((2, 6, rows, 20, 16, 48), kv_heads)
    assert_close(attend(library, q, k, v), expected(q, k, v))


def test_heads_may_be_between_rows_and_elements(library) -> None:
    """(batch, rows, heads, size), as a projection writes it; and a scale."""
    q, k, v = (
        np.ascontiguousarray(x.swapaxes(1, 2)).swapaxes(1, 2)
        for x in arrays((2, 4, 30, 40, 32, 64))
    )
    assert_close(attend(library, q, k, v, scale=0.5), expected(q, k, v, scale=0.5))


def test_large_products_do_not_overflow(library) -> None:
    """The greatest product of a row is subtracted, whenever it is met."""
    q, k, v = arrays((1, 1, 20, 1100, 16, 16))
    k *= np.linspace(1, 60, 1100, dtype=np.float32)[:, None]
    # The products have errors of 1e-7 of their size, about 500, which the exponential multiplies.
    assert_close(attend(library, q, k, v), expected(q, k, v), tolerance=5e-4)
