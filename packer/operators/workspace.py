"""How much workspace operators need: in floats, for low-precision elements in bytes.

The C functions ``dso_op_NAME_workspace`` return as much or less: these are the counts of the level
that needs most, for libraries with code for several.
"""

from __future__ import annotations

from .packed import BLOCK, PANEL
from .packed_lowp import WORD

RESIZE_FLOATS = 9  # of dso_op_resize, for each row and column of its outputs
_ROW_BLOCK = 64  # bytes of a row that are adjacent
_FEWEST_PACKED_ROWS = 12  # twice PIXELS of vector.h, where that is least


def padding_of_conv2d(
    extent: int, output: int, kernel: int, stride: int, dilation: int, pad: int
) -> int:
    """Return how many zeros beside the image the windows read, along one dimension of pixels.

    `pad` are the zeros before the first pixel.
    """
    after = (output - 1) * stride + (kernel - 1) * dilation + 1 - pad - extent
    return max(0, pad, after)


def conv2d_workspace(
    channels: int,
    height: int,
    width: int,
    *,
    block: int,
    padding: tuple[int, int],
    groups: int,
    needs: tuple[int, int],
) -> int:
    """Count the floats of one image.

    `block` and `padding` (rows, columns) are of the input; `needs` has what `padding_of_conv2d`
    returns for rows and columns.
    """
    wanted = 1 if block == 1 and channels < BLOCK and groups == 1 else BLOCK
    around = max(needs)
    if block == wanted and padding[1] >= around and padding[0] >= needs[0]:
        return 0
    above = around if needs[0] else 0
    return _up(channels, wanted) * (height + 2 * above) * (width + 2 * around) * wanted


def matmul_workspace(
    rows: int, inner: int, columns: int, *, a_column: int = 1, b_column: int | None = None
) -> int:
    """Count the floats of one product.

    `a_column` and `b_column` are the distances of adjacent columns; None: b is packed.
    """
    a = _up(inner, BLOCK) * BLOCK * rows if rows > 1 or a_column != 1 else 0
    if b_column is None or (b_column == 1 and columns % PANEL == 0 and rows < _FEWEST_PACKED_ROWS):
        return a
    return a + _up(columns, PANEL) * PANEL * inner


def most_of_matmul(rows: int, inner: int, columns: int, *, is_packed: bool) -> int:
    """Count the floats that one product may need, for any distances of its factors.

    The extents may also be expressions with ``*`` and ``//``.
    """
    a = _up(inner, BLOCK) * BLOCK * rows
    return a if is_packed else a + _up(columns, PANEL) * PANEL * inner


def bits_of_row(inner: int, block: int, *, activation_bits: int = 0) -> int:
    """Count the floats of a row of inputs as integers, for products with few bits.

    `block` inputs share a scale. With `activation_bits` of 0 an input takes three bytes.
    """
    return _up(inner, block) * (8 + (1 if activation_bits else 3) * block // 4)


def attention_workspace(
    heads: int, kv_heads: int, rows: int, keys: int, size: int, value_size: int
) -> int:
    """Count the floats of one element of the batch: `size` of a row of q and k."""
    q = _up(size, BLOCK) * BLOCK * rows
    k = _up(keys, PANEL) * PANEL * size
    v = _up(value_size, PANEL) * PANEL * keys if value_size % PANEL else 0
    return heads * q + kv_heads * (k + v)


def recurrent_workspace(batch: int, hidden: int, *, states: int) -> int:
    """Count the floats of one direction of a recurrent layer.

    Its kernel has 2 states for an RNN and for a GRU that resets after the product, 3 for an LSTM, 4
    for another GRU.
    """
    return states * batch * (_up(hidden, BLOCK) | 1) * BLOCK


def _up(count: int, size: int) -> int:
    return -(-count // size)


def lowp_panels(inner: int, columns: int, size: int) -> int:
    """Count the bytes of a packed right factor of elements of `size` bytes, 1 or 2."""
    words = _up(inner, WORD // size) + (size == 1)
    return _up(columns, PANEL) * words * PANEL * WORD


def lowp_matmul_workspace(rows: int, inner: int, columns: int, size: int) -> int:
    """Count the bytes of one product of elements of `size` bytes, 1 or 2.

    `columns` is 0 if the right factor is packed.
    """
    a = _up(inner * size, _ROW_BLOCK) * _ROW_BLOCK * rows
    return a + lowp_panels(inner, columns, size)


def lowp_conv2d_workspace(
    channels: int, height: int, width: int, *, block: int, groups: int, is_depthwise: bool
) -> int:
    """Count the bytes of one image of 8-bit integers.

    `height` and `width` include the pixels around it that the windows read. If `is_depthwise`, each
    group has one channel and one output.
    """
    of_group = channels if is_depthwise else channels // groups
    if block > 1 or is_depthwise:
        bytes_of_pixel = _up(of_group, PANEL) * PANEL
    else:
        size = min(_up(of_group, WORD) * WORD, PANEL)
        bytes_of_pixel = _up(of_group, size) * size
    return bytes_of_pixel * (1 if is_depthwise else groups) * height * width
