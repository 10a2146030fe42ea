"""dso_op_normalize called with NumPy's arrays, and NumPy's result."""

from __future__ import annotations

import ctypes
from ctypes import Structure, c_float, c_int, c_int64

import numpy as np

from .operators import Floats, pointer, run, steps

KINDS = ("layer", "rms", "softmax", "log_softmax")


class Normalize(Structure):
    """struct dso_op_normalize."""

    _fields_ = [
        *((name, c_int64) for name in ("rows", "size")),
        ("kind", c_int),
        *((name, Floats) for name in ("x", "scale", "bias", "out")),
        *((name, c_int64) for name in ("x_row", "out_row")),
        ("epsilon", c_float),
    ]


def normalize(
    library: ctypes.CDLL,
    x: np.ndarray,
    kind: str,
    scale: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    *,
    epsilon: float = 1e-5,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """Call the operator with rows (rows, size), whose strides are kept."""
    if out is None:
        out = np.full(x.shape, np.nan, np.float32)
    struct = Normalize(
        rows=x.shape[0],
        size=x.shape[1],
        kind=KINDS.index(kind),
        x=pointer(x),
        scale=pointer(scale),
        bias=pointer(bias),
        out=pointer(out),
        x_row=steps(x)[0],
        out_row=steps(out)[0],
        epsilon=epsilon,
    )
    run(library, "normalize", struct)
    return out


def expected(
    x: np.ndarray,
    kind: str,
    scale: np.ndarray | None = None,
    bias: np.ndarray | None = None,
    *,
    epsilon: float = 1e-5,
) -> np.ndarray:
    """Compute the same in double precision."""
    x = x.astype(np.float64)
    if kind.endswith("softmax"):
        less = x - x.max(axis=1, keepdims=True)
        powers = np.exp(less)
        total = powers.sum(axis=1, keepdims=True)
        return less - np.log(total) if kind == "log_softmax" else powers / total
    if kind == "layer":
        x = x - x.mean(axis=1, keepdims=True)
    x = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + np.float32(epsilon))
    return x * (1 if scale is None else scale) + (0 if bias is None else bias)
