"""dso_op_lowp_conv2d of 8-bit integers beside exact sums, at every level of this machine."""

from __future__ import annotations

import numpy as np
import pytest

from ..support.images import Window
from ..support.lowp import Result, lowp_conv2d
from ..support.operators import Epilogue
from .test_conv2d import CASES
from .test_lowp_matmul import KINDS, integers


def exact(
    x: np.ndarray, weight: np.ndarray, window: Window, zeros: tuple[int, object]
) -> np.ndarray:
    """The sums: float64 has each integer of them."""
    b_zero = np.asarray(zeros[1], np.float64).reshape(-1, 1, 1, 1)
    centred = weight.astype(np.float64) - b_zero
    return np.rint(window.convolve(x.astype(np.float64) - zeros[0], centred)).astype(np.int64)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("types", KINDS, ids="-".join)
def test_sums_are_exact(library, case, types) -> None:
    """Outside of the image is its zero; planar and, without groups, in blocks."""
    shape, outputs, window = CASES[case]
    x = integers(types[0], *shape)
    weight = integers(types[1], outputs, shape[1] // window.groups, *window.kernel)
    for zeros in ((5, 0), (int(x.max()) - 3, integers(types[1], outputs))):
        expected = exact(x, weight, window, zeros)
        is_open = window.groups == 1 or window.groups == shape[1] == outputs
        for blocks in ((1, 1), (32, 1), (32, 32)) if is_open else ((1, 1),):
            found = lowp_conv2d(library, window, x, weight, Result(), zeros=zeros, blocks=blocks)
            assert np.array_equal(found, expected)


@pytest.mark.parametrize("case", ["3x3 of odd extents", "depthwise of odd extents", "groups of 4"])
@pytest.mark.parametrize("dtype", ["int8", "uint8", "float32"])
def test_results_have_scale_and_activation(library, case, dtype) -> None:
    """The scale, and of 8 bits the zero, are given for each output channel."""
    shape, outputs, window = CASES[case]
    x = integers("uint8", *shape)
    weight = integers("int8", outputs, shape[1] // window.groups, *window.kernel)
    scale = (np.arange(1, outputs + 1) / (4000 * outputs)).astype(np.float32)
    bias = np.arange(outputs, dtype=np.int32) * 50
    result = Result(dtype, bias, scale, 3, Epilogue(activation="relu"))
    found = lowp_conv2d(library, window, x, weight, result, zeros=(100, 0))
    sums = np.moveaxis(exact(x, weight, window, (100, 0)), 1, 3)
    expected = np.moveaxis(result.expected(sums), 3, 1)
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-6)
