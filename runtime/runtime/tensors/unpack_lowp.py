"""Packed weights of 8-bit integers and bfloat16 as arrays of their shape.

The inverse of ``packer.operators.pack_lowp_matmul`` and ``pack_lowp_conv2d``. It needs NumPy.
"""

from __future__ import annotations

from math import prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PANEL, WORD = 32, 4  # outputs of a panel, bytes of a word
_SIZES = {"int8": 1, "uint8": 1, "bfloat16": 2}


def lowp_matmul(flat: Any, shape: tuple[int, ...], form: Mapping[str, Any]) -> Any:
    """(..., panels, words, 32, 4) -> (..., inner, columns), or the other way round."""
    import numpy as np

    if len(shape) < 2:
        raise ValueError(f"shape {list(shape)}, expected at least 2 extents")
    is_transposed = form.get("transposed", False) is True
    *batch, inner, columns = (*shape[:-2], shape[-1], shape[-2]) if is_transposed else shape
    whole = _columns(flat, tuple(batch), inner, columns, form.get("dtype"))
    return np.ascontiguousarray(whole.swapaxes(-1, -2) if is_transposed else whole)


def _columns(flat: Any, batch: tuple[int, ...], inner: int, columns: int, dtype: object) -> Any:
    """Return (..., inner, columns): int8, uint8, or uint16 for bfloat16."""
    import numpy as np

    size = _SIZES.get(dtype) if isinstance(dtype, str) else None
    if size is None:
        raise ValueError(f"dtype {dtype!r}, expected one of {sorted(_SIZES)}")
    in_word, panels = WORD // size, -(-columns // PANEL)
    words = -(-inner // in_word)
    rows = words + (size == 1)  # with the sums of the columns
    if flat.nbytes != prod(batch) * panels * rows * PANEL * WORD:
        raise ValueError(f"{flat.nbytes} bytes, expected the size of {panels} panels")
    lines = flat.reshape(*batch, panels, rows, PANEL * WORD)[..., :words, :]
    values = np.ascontiguousarray(lines).view(np.int8 if size == 1 else np.uint16)
    split = values.reshape(*batch, panels, words, PANEL, in_word)
    split = np.moveaxis(split, (-4, -3, -2, -1), (-2, -4, -1, -3))
    whole = split.reshape(*batch, words * in_word, panels * PANEL)[..., :inner, :columns]
    return whole.view(np.uint8) ^ np.uint8(128) if dtype == "uint8" else whole


def lowp_conv2d(flat: Any, shape: tuple[int, ...], form: Mapping[str, Any]) -> Any:
    """Return (outputs, channels / groups, kernel y, kernel x): int8 or uint8."""
    import numpy as np

    groups = form.get("groups", 1)
    is_known = form.get("dtype") in ("int8", "uint8") and type(groups) is int and groups > 0
    if len(shape) != 4 or not is_known or shape[0] % groups or 0 in shape:
        raise ValueError(f"shape {list(shape)} with {groups} groups, expected 4 extents")
    outputs, channels, taps = shape[0], shape[1], shape[2] * shape[3]
    if groups == channels * groups == outputs > 1:
        panels = -(-outputs // PANEL)
        lines = _lines(flat, panels, taps * PANEL)
        whole = lines.reshape(panels, taps, PANEL).swapaxes(1, 2).reshape(-1, taps)[:outputs]
    else:
        of_group = outputs // groups
        panels, rows = -(-of_group // PANEL), -(-channels // WORD) * WORD
        lines = _lines(flat, groups * panels, rows * taps * PANEL)
        parts, at = [], 0
        for begin in range(0, rows, PANEL):
            count = min(rows - begin, PANEL)
            end = at + count * taps * PANEL
            part = lines[:, at:end].reshape(groups, panels, taps, count // WORD, PANEL, WORD)
            parts.append(part.transpose(0, 1, 4, 3, 5, 2).reshape(groups, -1, count, taps))
            at = end
        whole = np.concatenate(parts, axis=2)[:, :of_group, :channels]
    found = np.ascontiguousarray(whole).reshape(shape)
    return found.view(np.uint8) ^ np.uint8(128) if form["dtype"] == "uint8" else found


def _lines(flat: Any, panels: int, size: int) -> Any:
    """Return the weights of each panel, without the sums after them."""
    if flat.nbytes != panels * (size + PANEL * WORD):
        raise ValueError(f"{flat.nbytes} bytes, expected the size of {panels} panels")
    return flat.reshape(panels, -1)[:, :size]
