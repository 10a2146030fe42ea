"""The layouts of packed weights of 8-bit integers and bfloat16, written with NumPy.

The C functions `dso_op_lowp_matmul_pack` and `dso_op_lowp_conv2d_pack` write the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .packed import PANEL

if TYPE_CHECKING:
    from collections.abc import Sequence

WORD = 4  # bytes: adjacent inputs of one output


def pack_lowp_matmul(b: Any) -> Any:
    """Pack the right factor of a matrix product of 8-bit integers or bfloat16.

    Parameters
    ----------
    b : ndarray
        The shape is (..., inner, columns); of int8, uint8, or a type of 2 bytes that holds
        bfloat16. A transposed view of a weight is fine.

    Returns
    -------
    ndarray
        int8, C-contiguous: (..., columns / 32 rounded up, words, 32, 4). A word has 4 integers or 2
        bfloat16, of one column. Elements of uint8 are stored less 128. The last word of a panel
        of integers is the sum of each column, as int32. The caller owns it.

    Raises
    ------
    TypeError
        The elements are of another size.
    """
    import numpy as np

    *batch, inner, columns = b.shape
    is_integer = b.dtype in (np.int8, np.uint8)
    if not is_integer and b.dtype.itemsize != WORD // 2:
        raise TypeError(f"elements of b, expected int8, uint8 or bfloat16, found {b.dtype}")
    values = (b ^ np.uint8(128)).view(np.int8) if b.dtype == np.uint8 else b
    values = values if is_integer else np.ascontiguousarray(b).view(np.uint16)
    in_word = WORD // values.dtype.itemsize
    words, panels = -(-inner // in_word), -(-columns // PANEL)
    whole = np.zeros((*batch, words * in_word, panels * PANEL), values.dtype)
    whole[..., :inner, :columns] = values
    split = whole.reshape(*batch, words, in_word, panels, PANEL)
    packed = np.moveaxis(split, (-2, -4, -1, -3), (-4, -3, -2, -1))
    packed = np.ascontiguousarray(packed).view(np.int8)
    if not is_integer:
        return packed
    sums = whole.sum(axis=-2, dtype=np.int32).reshape(*batch, panels, 1, PANEL, 1)
    return np.concatenate([packed, sums.view(np.int8)], axis=-3)


def pack_lowp_conv2d(weight: Any, *, groups: int = 1) -> Any:
    """Pack the weight of a convolution of 8-bit integers.

    Parameters
    ----------
    weight : ndarray
        In ONNX's and PyTorch's order: (outputs, channels / groups, kernel y, kernel x); of int8 or
        uint8.
    groups : int
        The number of groups.

    Returns
    -------
    ndarray
        int8 of one dimension. The caller owns it.
    """
    import numpy as np

    outputs, channels, *kernel = weight.shape
    taps = kernel[0] * kernel[1]
    values = (weight ^ np.uint8(128)).view(np.int8) if weight.dtype == np.uint8 else weight
    if groups == channels * groups == outputs > 1:
        return _pack_depthwise(values.reshape(outputs, taps))
    block = min(-(-channels // WORD) * WORD, PANEL)
    rows = -(-channels // WORD) * WORD
    panels = -(-(outputs // groups) // PANEL)
    whole = np.zeros((groups, panels * PANEL, rows, taps), np.int8)
    whole[:, : outputs // groups, :channels] = values.reshape(groups, -1, channels, taps)
    lines = whole.reshape(groups, panels, PANEL, rows, taps)
    parts = []
    for begin in range(0, rows, block):
        part = lines[:, :, :, begin : begin + block]
        split = part.reshape(groups, panels, PANEL, -1, WORD, taps)
        parts.append(split.transpose(0, 1, 5, 3, 2, 4).reshape(groups, panels, -1))
    sums = lines.sum(axis=(3, 4), dtype=np.int32).view(np.int8)
    return np.concatenate([*parts, sums], axis=2).ravel()


def lowp_matmul_shape(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return the shape of what `pack_lowp_matmul` makes of a factor of this shape."""
    *batch, inner, columns = shape
    words = -(-inner * itemsize // WORD) + (itemsize == 1)
    return (*batch, -(-columns // PANEL), words, PANEL, WORD)


def lowp_conv2d_count(shape: Sequence[int], groups: int) -> int:
    """Return how many bytes `pack_lowp_conv2d` makes of a weight of this shape."""
    outputs, channels, *kernel = shape
    taps = kernel[0] * kernel[1]
    if groups == channels * groups == outputs > 1:
        return -(-outputs // PANEL) * PANEL * (taps + WORD)
    rows = -(-channels // WORD) * WORD
    return groups * -(-(outputs // groups) // PANEL) * PANEL * (rows * taps + WORD)


def _pack_depthwise(weight: Any) -> Any:
    """Pack (channels, taps) in panels of channels."""
    import numpy as np

    channels, taps = weight.shape
    panels = -(-channels // PANEL)
    whole = np.zeros((panels * PANEL, taps), np.int8)
    whole[:channels] = weight
    lines = whole.reshape(panels, PANEL, taps)
    sums = lines.sum(axis=2, dtype=np.int32).view(np.int8)
    packed = lines.swapaxes(1, 2).reshape(panels, -1)
    return np.concatenate([packed, sums], axis=1).ravel()
