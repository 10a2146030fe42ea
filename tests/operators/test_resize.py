"""dso_op_resize beside NumPy, at every level of this machine."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from ..support.images import Memory
from ..support.operators import assert_close
from ..support.resize import MODES, resize

LAYOUTS = {"padded blocks": (16, 2), "planes": (1, 0)}
# Rows wider than the part of a row that has room, few and many outputs of a pixel, other planes.
SHAPES = [
    ((2, 19, 5, 7), (10, 14)),
    ((1, 16, 9, 6), (4, 71)),
    ((1, 2, 3, 5000), (34, 900)),
    ((1, 1, 1, 1), (3, 40)),
    ((2, 2, 4, 3), (4, 9)),
]


def images_of(shape: tuple[int, ...]) -> np.ndarray:
    """Random images."""
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


@cache
def expected(shape: tuple[int, ...], height: int, width: int, mode: str) -> np.ndarray:
    """Interpolate random images in double precision, one axis after the other."""
    images = images_of(shape)
    for axis, extent in ((2, height), (3, width)):
        images = np.apply_along_axis(between, axis, images.astype(np.float64), extent, mode)
    return images


def between(row: np.ndarray, extent: int, mode: str) -> np.ndarray:
    """Interpolate a row at the middles of `extent` pixels; these are float32 as in ONNX Runtime."""
    middles = np.arange(extent, dtype=np.float32) + np.float32(0.5)
    places = middles * np.float32(len(row)) / np.float32(extent) - np.float32(0.5)
    if mode == "nearest":
        return row[np.clip(np.ceil(places - 0.5).astype(int), 0, len(row) - 1)]
    if mode == "linear":
        return np.interp(places, np.arange(len(row)), row)
    first = np.floor(places).astype(int)
    made = np.zeros(extent)
    for at in (first - 1, first, first + 1, first + 2):
        x = np.abs(places - at)
        near = 1.25 * x**3 - 2.25 * x**2 + 1
        far = -0.75 * (x**3 - 5 * x**2 + 8 * x - 4)
        made += row[np.clip(at, 0, len(row) - 1)] * np.where(x <= 1, near, far)
    return made


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(("shape", "extents"), SHAPES, ids=str)
def test_resized_images_are_numpys(library, shape, extents, layout, mode) -> None:
    """From each layout to itself; the padding of the output is written."""
    block, padding = LAYOUTS[layout]
    found = resize(library, Memory.of(images_of(shape), block, 0), *extents, mode, padding)
    assert_close(found, expected(shape, *extents, mode), 1e-5)


def test_an_empty_image_has_no_larger_one(library) -> None:
    """No pixel is read; an empty image of an empty one is made."""
    empty = Memory.of(np.zeros((1, 2, 0, 3), np.float32), 1, 0)
    assert resize(library, empty, 0, 6, "linear").shape == (1, 2, 0, 6)
    with pytest.raises(AssertionError):
        resize(library, empty, 2, 3, "linear")
