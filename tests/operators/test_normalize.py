"""dso_op_normalize beside NumPy in double precision, at every level of this machine."""

from __future__ import annotations

import numpy as np
import pytest

from ..support.normalization import KINDS, expected, normalize
from ..support.operators import assert_close

# Below, at and above the sizes of vectors, of the sums beside each other, and of parts.
SIZES = (1, 2, 3, 7, 8, 15, 16, 17, 63, 64, 65, 197, 768, 2047, 2048, 2049, 5000)


def floats(*shape: int) -> np.ndarray:
    """Random floats; the same for the same shape."""
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES)
def test_rows_are_numpys(library, kind, size) -> None:
    """Of any length, and more rows than one item has."""
    x = floats(5 if size > 100 else 1000, size) * 3
    assert_close(normalize(library, x, kind), expected(x, kind))


@pytest.mark.parametrize("kind", ["layer", "rms"])
@pytest.mark.parametrize("size", [1, 16, 45, 200])
@pytest.mark.parametrize("used", ["scale", "bias", "both"])
def test_scale_and_bias_follow(library, kind, size, used) -> None:
    """Each of them, and both."""
    x = floats(9, size)
    scale = floats(size) if used != "bias" else None
    bias = floats(size + 1)[:size] if used != "scale" else None
    found = normalize(library, x, kind, scale, bias, epsilon=0.01)
    assert_close(found, expected(x, kind, scale, bias, epsilon=0.01))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_may_be_apart_and_replaced(library, kind) -> None:
    """Floats between rows are not written; the output may be the input."""
    whole = floats(20, 50)
    rows, rest, wanted = whole[:, :35], whole[:, 35:].copy(), expected(whole[:, :35], kind)
    normalize(library, rows, kind, out=rows)
    assert_close(rows, wanted)
    assert (whole[:, 35:] == rest).all()


def test_large_mean_costs_no_accuracy(library) -> None:
    """A mean 10,000 times the deviation; the squares are of differences from it."""
    x = floats(3, 1000) + np.float32(10000)
    assert_close(normalize(library, x, "layer"), expected(x, "layer"))


def test_equal_floats_are_zero(library) -> None:
    """Their variance is 0, or what the mean lost."""
    x = np.full((2, 300), 0.1, np.float32)
    assert abs(normalize(library, x, "layer")).max() <= 1e-4


def test_long_row_is_as_accurate(library) -> None:
    """A million floats with a mean of 1."""
    x = floats(1, 1 << 20) + 1
    for kind in KINDS:
        assert_close(normalize(library, x, kind), expected(x, kind))


def test_softmax_of_great_floats(library) -> None:
    """The greatest float is subtracted; one that is -inf has no part, and NaN stays."""
    x = np.array([[1e30, -1e30, 1e30], [-np.inf, 3, 3], [-700, -700, -np.inf], [1, np.nan, 2]])
    found = normalize(library, x.astype(np.float32), "softmax")
    assert found[:3].tolist() == [[0.5, 0, 0.5], [0, 0.5, 0.5], [0.5, 0.5, 0]]
    assert np.isnan(found[3]).all()


def test_no_rows_write_nothing(library) -> None:
    """No rows, and rows without floats."""
    for shape in ((0, 4), (4, 0)):
        assert normalize(library, np.zeros(shape, np.float32), "softmax").size == 0
