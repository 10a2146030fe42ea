"""dso_op_resize: its struct, and calls of it."""

from __future__ import annotations

import ctypes
from ctypes import Structure, c_float, c_int, c_int64

import numpy as np

from .images import Image, Memory
from .operators import Floats, run

MODES = ("nearest", "linear", "cubic")


class Resize(Structure):
    """struct dso_op_resize."""

    _fields_ = [
        ("batch", c_int64),
        *(("in_", Image), ("out", Image)),
        ("scale", c_float * 2),
        *((name, c_int) for name in ("mode", "places", "nearest")),
        *(("cubic", c_float), ("exclude_outside", c_int), ("workspace", Floats)),
    ]


def resize(
    library: ctypes.CDLL, source: Memory, height: int, width: int, mode: str, padding: int = 0
) -> np.ndarray:
    """Resize images by the quotients of the extents; places are in the middle of pixels."""
    batch, _, _, _, block = source.array.shape
    empty = np.zeros((batch, source.channels, height, width), np.float32)
    out = Memory.of(empty, block, padding)
    out.array[:] = np.nan
    struct = Resize(batch=batch, in_=source.struct(), out=out.struct(), cubic=-0.75)
    struct.mode = MODES.index(mode)
    run(library, "resize", struct)
    return out.images()
