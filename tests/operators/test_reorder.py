"""dso_op_reorder beside NumPy, at every level of this machine."""

from __future__ import annotations

import numpy as np
import pytest

from ..support.images import Memory, reorder

LAYOUTS = {"blocks": (16, 0), "padded blocks": (16, 2), "planes": (1, 0), "padded planes": (1, 1)}


def images_of(shape: tuple[int, ...]) -> np.ndarray:
    """Random images."""
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize("shape", [(1, 16, 4, 16), (2, 35, 5, 7), (1, 3, 20, 33)], ids=str)
@pytest.mark.parametrize("of_in", LAYOUTS)
@pytest.mark.parametrize("of_out", LAYOUTS)
def test_reordered_images_are_the_same(library, shape, of_in, of_out) -> None:
    """The padding of the output is written, that of the input is not read."""
    images = images_of(shape)
    found = reorder(library, Memory.of(images, *LAYOUTS[of_in]), *LAYOUTS[of_out])
    assert (found == images).all()
