"""Weights that are stored in the order in which an operator reads them, as arrays of their shape.

The inverse of ``packer.operators.pack_matmul`` and ``pack_conv2d`` (docs/operators.md, Layouts);
`unpack_lowp` has that of the low-precision types. It needs NumPy.
"""

from __future__ import annotations

from math import prod

from .tensor import Tensor, tensor
from .unpack_bits import matmul_bits
from .unpack_lowp import lowp_conv2d, lowp_matmul

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

PANEL = 32  # adjacent outputs of a weight
BLOCK = 16  # adjacent channels of an image


def unpack(stored: Tensor, form: Mapping[str, Any]) -> Tensor:
    """Return a packed weight as an array of the shape that it had: a copy, which the caller owns.

    `form` is its entry in the record. Raises ValueError if that is malformed, names another
    kernel, or does not fit the tensor; ImportError without NumPy.
    """
    shape = _shape(form)
    kernels: dict[object, Callable[..., Any]] = {
        "conv2d": _conv2d,
        "matmul": _matmul,
        "matmul_bits": matmul_bits,
        "lowp_conv2d": lowp_conv2d,
        "lowp_matmul": lowp_matmul,
    }
    kernel = form.get("kernel")
    if kernel not in kernels:
        raise ValueError(f"kernel {kernel!r}, expected one of {sorted(map(str, kernels))}")
    flat = stored.numpy().reshape(-1)
    found = tensor(kernels[kernel](flat, shape, form))
    is_plain = form.get("dtype", found.dtype) == found.dtype
    return found if is_plain else Tensor(found.raw, shape, form["dtype"])


def _shape(form: Mapping[str, Any]) -> tuple[int, ...]:
    shape = form.get("shape")
    if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 1 << 40 for n in shape):
        raise ValueError(f"shape {shape!r}, expected a list of extents")
    return tuple(shape)


def _number(form: Mapping[str, Any], key: str, default: int) -> int:
    value = form.get(key, default)
    if type(value) is not int or value < 1:
        raise ValueError(f"{key} {value!r}, expected a number of at least 1")
    return value


def _check_size(flat: Any, nelements: int) -> None:
    if flat.size != nelements:
        raise ValueError(f"{flat.size} elements, expected {nelements}")


def _matmul(flat: Any, shape: tuple[int, ...], form: Mapping[str, Any]) -> Any:
    """(..., columns / 32, inner, 32) -> (..., inner, columns), or the other way round."""
    import numpy as np

    if len(shape) < 2:
        raise ValueError(f"shape {list(shape)}, expected at least 2 extents")
    is_transposed = form.get("transposed", False) is True
    *batch, inner, columns = (*shape[:-2], shape[-1], shape[-2]) if is_transposed else shape
    panels = -(-columns // PANEL)
    _check_size(flat, prod(batch) * panels * inner * PANEL)
    packed = np.moveaxis(flat.reshape(*batch, panels, inner, PANEL), -3, -2)
    whole = packed.reshape(*batch, inner, panels * PANEL)[..., :columns]
    return np.ascontiguousarray(whole.swapaxes(-1, -2) if is_transposed else whole)


# ---- Convolutions: (outputs, channels / groups, kernel y, kernel x)


def _conv2d(flat: Any, shape: tuple[int, ...], form: Mapping[str, Any]) -> Any:
    import numpy as np

    groups, block = _number(form, "groups", 1), _number(form, "block", BLOCK)
    if len(shape) != 4 or shape[0] % groups:
        raise ValueError(f"shape {list(shape)} with {groups} groups, expected 4 extents")
    outputs, channels, taps = shape[0], shape[1], shape[2] * shape[3]
    every = channels * groups
    if groups == every == outputs > 1:
        whole = _depthwise(flat, outputs, taps)
    elif groups > 1:
        whole = _grouped(flat, shape, groups)
    else:
        inner = BLOCK if block == BLOCK or every >= BLOCK else 1
        whole = _plain(flat, outputs, (every, taps), inner)
    return np.ascontiguousarray(whole).reshape(shape)


def _depthwise(flat: Any, outputs: int, taps: int) -> Any:
    blocks = -(-outputs // BLOCK)
    _check_size(flat, blocks * taps * BLOCK)
    return flat.reshape(blocks, taps, BLOCK).swapaxes(1, 2).reshape(-1, taps)[:outputs]


def _plain(flat: Any, outputs: int, row: tuple[int, int], inner: int) -> Any:
    """Without groups: the last block of each panel has only the channels that there are."""
    import numpy as np

    every, taps = row
    panels, blocks = -(-outputs // PANEL), every // inner
    _check_size(flat, panels * every * taps * PANEL)
    lines = flat.reshape(panels, every * taps * PANEL)
    cut = blocks * inner * taps * PANEL
    full = lines[:, :cut].reshape(panels, blocks, taps, inner, PANEL)
    full = full.transpose(0, 4, 1, 3, 2).reshape(panels * PANEL, blocks * inner, taps)
    rest = lines[:, cut:].reshape(panels, taps, every - blocks * inner, PANEL)
    rest = rest.transpose(0, 3, 2, 1).reshape(panels * PANEL, every - blocks * inner, taps)
    return np.concatenate([full, rest], axis=1)[:outputs]


def _grouped(flat: Any, shape: tuple[int, ...], groups: int) -> Any:
    """With groups: a panel has the blocks of channels that its groups read, all equally many."""
    import numpy as np

    outputs, channels, taps = shape[0], shape[1], shape[2] * shape[3]
    per_group, rows = outputs // groups, -(-channels * groups // BLOCK)
    firsts = range(0, outputs, PANEL)
    starts = [first // per_group * channels for first in firsts]
    lasts = [min(first + PANEL, outputs) - 1 for first in firsts]
    stops = [(last // per_group + 1) * channels for last in lasts]
    spans = zip(starts, stops, strict=True)
    blocks = max((-(-stop // BLOCK) - start // BLOCK for start, stop in spans), default=0)
    _check_size(flat, len(starts) * blocks * taps * BLOCK * PANEL)
    panels = flat.reshape(len(starts), blocks, taps, BLOCK, PANEL)
    whole = np.empty((outputs, channels, taps), flat.dtype)
    for output in range(outputs):
        panel, lane = divmod(output, PANEL)
        begin = min(starts[panel] // BLOCK, rows - blocks) * BLOCK
        read = panels[panel, :, :, :, lane].swapaxes(1, 2).reshape(blocks * BLOCK, taps)
        row = output // per_group * channels - begin
        whole[output] = read[row : row + channels]
    return whole
