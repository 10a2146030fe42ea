"""dso_op_pooling called with images of NumPy's arrays, and NumPy's result."""

from __future__ import annotations

import ctypes
from ctypes import Structure, c_int, c_int64

import numpy as np

from .images import Image, Memory, Window
from .operators import Pair, run


class Pooling(Structure):
    """struct dso_op_pooling."""

    _fields_ = [
        ("batch", c_int64),
        *(("in_", Image), ("out", Image)),
        *((name, Pair) for name in ("kernel", "stride", "dilation", "pad", "pad_after")),
        *((name, c_int) for name in ("is_average", "count_padding")),
    ]


def pool(
    library: ctypes.CDLL,
    window: Window,
    source: Memory,
    *,
    is_average: bool = False,
    count_padding: bool = False,
    padding: int = 0,
    extents: tuple[int, int] | None = None,
) -> np.ndarray:
    """Pool images into their own layout, with another padding; `extents` are the output's."""
    batch, _, height, width, block = source.array.shape
    inside = height - 2 * source.padding, width - 2 * source.padding
    empty = np.zeros((batch, source.channels, *(extents or window.extents(*inside))), np.float32)
    out = Memory.of(empty, block, padding)
    out.array[:] = np.nan
    struct = Pooling(
        batch=batch,
        in_=source.struct(),
        out=out.struct(),
        kernel=Pair(*window.kernel),
        stride=Pair(*window.stride),
        dilation=Pair(*window.dilation),
        pad=Pair(*window.pads[:2]),
        pad_after=Pair(*window.pads[2:]),
        is_average=is_average,
        count_padding=count_padding,
    )
    run(library, "pooling", struct)
    return out.images()


def expected(
    window: Window,
    images: np.ndarray,
    *,
    is_average: bool = False,
    count_padding: bool = False,
    extents: tuple[int, int] | None = None,
) -> np.ndarray:
    """Compute the same in double precision, window after window."""
    top, left, bottom, right = window.pads
    height, width = images.shape[2:]
    rows, columns = extents or window.extents(height, width)
    results = np.zeros((*images.shape[:2], rows, columns))
    for y, x in np.ndindex(rows, columns):
        at_y = y * window.stride[0] - top + np.arange(window.kernel[0]) * window.dilation[0]
        at_x = x * window.stride[1] - left + np.arange(window.kernel[1]) * window.dilation[1]
        in_y, in_x = (
            at[(at >= 0) & (at < extent)] for at, extent in ((at_y, height), (at_x, width))
        )
        taken = images[:, :, in_y][..., in_x].astype(np.float64)
        if not is_average:
            results[:, :, y, x] = taken.max(axis=(2, 3), initial=-np.inf)
            continue
        count = len(in_y) * len(in_x)
        if count_padding:
            count = (at_y < height + bottom).sum() * (at_x < width + right).sum()
        results[:, :, y, x] = taken.sum(axis=(2, 3)) / max(count, 1)
    return results
