"""dso_op_pooling beside NumPy in double precision, at every level of this machine."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from ..support.images import Memory, Window
from ..support.operators import assert_close
from ..support.pooling import expected, pool

# (batch, channels, height, width), window
CASES = {
    "3x3 of stride 2": ((1, 32, 14, 29), Window(stride=(2, 2))),
    "3x3 of stride 1": ((2, 19, 9, 37), Window()),
    "2x2 of stride 2": ((1, 16, 8, 40), Window((2, 2), (2, 2), pads=(0, 0, 0, 0))),
    "2x2 of an odd image": ((1, 16, 9, 41), Window((2, 2), (2, 2), pads=(0, 0, 0, 0))),
    "stride 3": ((1, 7, 13, 17), Window((2, 3), (3, 3), pads=(1, 0, 0, 1))),
    "different strides": ((1, 20, 9, 23), Window((3, 2), (2, 1), pads=(0, 1, 2, 0))),
    "dilated": ((1, 16, 20, 35), Window(dilation=(2, 3), pads=(2, 3, 2, 3))),
    "dilated, of one column": ((1, 16, 20, 5), Window(dilation=(3, 2), pads=(0, 0, 0, 0))),
    "whole image": ((2, 40, 7, 7), Window((7, 7), pads=(0, 0, 0, 0))),
    "whole large image": ((1, 17, 50, 67), Window((50, 67), pads=(0, 0, 0, 0))),
    "whole rows": ((1, 17, 9, 37), Window((3, 37), pads=(1, 0, 1, 0))),
    "one pixel": ((1, 5, 1, 1), Window((1, 1), pads=(0, 0, 0, 0))),
    "window wider than the image": ((1, 16, 3, 4), Window((9, 9), pads=(4, 4, 4, 4))),
}
KINDS = {
    "max": {},
    "average": {"is_average": True},
    "average with padding": {"is_average": True, "count_padding": True},
}
LAYOUTS = {"blocks": (16, 0), "padded blocks": (16, 2), "planes": (1, 0), "padded planes": (1, 1)}


def images_of(case: str) -> np.ndarray:
    """Random images, with a mean."""
    random = np.random.default_rng(len(case))
    return (random.normal(size=CASES[case][0]) - 1).astype(np.float32)


@cache
def wanted(case: str, kind: str) -> np.ndarray:
    """NumPy's result for a case."""
    return expected(CASES[case][1], images_of(case), **KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("case", CASES)
def test_pooled_images_are_numpys(library, case, layout, kind) -> None:
    """From each layout to itself with another padding; padding has no part in a maximum."""
    block, padding = LAYOUTS[layout]
    images, window = images_of(case), CASES[case][1]
    source = Memory.of(images, block, padding)
    inside = np.s_[:, :, padding : padding + images.shape[2], padding : padding + images.shape[3]]
    padded = np.full_like(source.array, np.nan)  # the padding is not read
    padded[inside] = source.array[inside]
    source.array = padded
    found = pool(library, window, source, **KINDS[kind], padding=2 - padding)
    assert_close(found, wanted(case, kind))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("count_padding", [False, True])
def test_last_window_may_end_outside_of_the_padding(library, layout, count_padding) -> None:
    """ONNX's ceil_mode: only taps of the padded image are counted."""
    block, padding = LAYOUTS[layout]
    images = np.random.default_rng(1).normal(size=(1, 18, 8, 12)).astype(np.float32)
    window = Window(stride=(2, 2))
    for is_average in (False, True):
        options = {
            "is_average": is_average, "count_padding": count_padding, "extents": (5, 7)
        }  # fmt: skip
        found = pool(library, window, Memory.of(images, block, padding), **options)
        assert_close(found, expected(window, images, **options))


@pytest.mark.parametrize("block", [1, 16])
def test_empty_window_has_no_maximum(library, block) -> None:
    """It is -inf, and 0 in the channels that a block does not have; the average is 0."""
    window = Window((2, 2), dilation=(2, 2), pads=(1, 1, 1, 1))
    source = Memory.of(np.ones((1, 5, 1, 1), np.float32), block, 0)
    assert (pool(library, window, source) == -np.inf).all()
    assert (pool(library, window, source, is_average=True) == 0).all()
