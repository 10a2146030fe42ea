"""dso_op_attention called with NumPy's arrays, and NumPy's result."""

from __future__ import annotations

import ctypes
from ctypes import Structure, c_float, c_int, c_int64

import numpy as np

from .operators import Floats, pointer, run, steps


class Attention(Structure):
    """struct dso_op_attention."""

    _fields_ = [
        *((name, c_int64) for name in ("batch", "heads", "kv_heads", "rows", "keys")),
        *((name, c_int64) for name in ("size", "value_size")),
        *((name, Floats) for name in "qkv"),
        *((f"{name}_{step}", c_int64) for name in "qkv" for step in ("batch", "head", "row")),
        ("mask", Floats),
        *((f"mask_{step}", c_int64) for step in ("batch", "head", "row")),
        *(("is_causal", c_int), ("past", c_int64), ("scale", c_float)),
        ("out", Floats),
        *((f"out_{step}", c_int64) for step in ("batch", "head", "row")),
        ("workspace", Floats),
    ]


def attend(
    library: ctypes.CDLL,
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    is_causal: bool = False,
    past: int = 0,
    scale: float = 0,
) -> np.ndarray:
    """Call the operator with arrays (batch, heads, rows, size), whose strides are kept."""
    batch, heads, rows, size = q.shape
    out = np.full((batch, rows, heads, v.shape[3]), np.nan, np.float32).swapaxes(1, 2)
    struct = Attention(
        batch=batch,
        heads=heads,
        kv_heads=k.shape[1],
        rows=rows,
        keys=k.shape[2],
        size=size,
        value_size=v.shape[3],
        is_causal=is_causal,
        past=past,
        scale=scale,
    )
    arrays = {"q": q, "k": k, "v": v, "out": out}
    if mask is not None:
        arrays["mask"] = np.broadcast_to(mask, (batch, heads, rows, k.shape[2]))
    for name, array in arrays.items():
        setattr(struct, name, pointer(array))
        for step, distance in zip(("batch", "head", "row"), steps(array), strict=False):
            setattr(struct, f"{name}_{step}", distance)
    run(library, "attention", struct)
    return out


def expected(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    mask: np.ndarray | None = None,
    *,
    is_causal: bool = False,
    past: int = 0,
    scale: float = 0,
) -> np.ndarray:
    """Compute the same in double precision."""
    share = q.shape[1] // k.shape[1]
    q, k, v = (x.astype(np.float64) for x in (q, k.repeat(share, 1), v.repeat(share, 1)))
    products = q @ k.swapaxes(2, 3) * (scale or q.shape[3] ** -0.5)
    if mask is not None:
        products = products + mask
    if is_causal:
        row, key = np.indices(products.shape[2:])
        products = np.where(key > row + past, -np.inf, products)
    greatest = products.max(axis=3, keepdims=True, initial=-np.inf)
    powers = np.exp(products - np.where(np.isfinite(greatest), greatest, 0))
    sums = powers.sum(axis=3, keepdims=True)
    return (powers / np.where(sums > 0, sums, 1)) @ v
