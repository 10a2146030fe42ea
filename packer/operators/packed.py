"""The layouts of packed weights, written with NumPy during an export.

The C functions `dso_op_conv2d_pack` and `dso_op_matmul_pack` write the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PANEL = 32  # adjacent outputs of a weight
BLOCK = 16  # adjacent channels of an image
HALF = 2  # bytes of float16 and bfloat16


def pack_matmul(b: Any) -> Any:
    """Pack the right factor of a matrix product.

    Parameters
    ----------
    b : ndarray
        The shape is (..., inner, columns). A transposed view of a weight is fine.

    Returns
    -------
    ndarray
        float32, or the type of `b` if that has 2 bytes, C-contiguous: (..., columns / 32 rounded
        up, inner, 32), with zeros for the columns that are missing. The caller owns it.
    """
    import numpy as np

    *batch, inner, columns = b.shape
    panels = -(-columns // PANEL)
    packed = np.zeros((*batch, inner, panels * PANEL), stored_type(b))
    packed[..., :columns] = b
    packed = packed.reshape(*batch, inner, panels, PANEL)
    return np.ascontiguousarray(np.moveaxis(packed, -2, -3))


def pack_conv2d(weight: Any, *, groups: int = 1, block: int = BLOCK) -> Any:
    """Pack the weight of a convolution.

    Parameters
    ----------
    weight : ndarray
        In ONNX's and PyTorch's order: (outputs, channels / groups, kernel y, kernel x).
    groups : int
        The number of groups.
    block : {16, 1}
        The block of the convolution's input: 16 for NCHW16c, 1 for NCHW.

    Returns
    -------
    ndarray
        float32, or the type of `weight` if that has 2 bytes and the convolution is not depthwise,
        of one dimension. The caller owns it.
    """
    import numpy as np

    return np.concatenate([part.ravel() for part in conv2d_parts(weight, groups, block)])


def stored_type(weight: Any) -> Any:
    """Return the type of a packed weight: that of float16 and bfloat16, else float32."""
    import numpy as np

    return weight.dtype if weight.dtype.itemsize == HALF else np.dtype(np.float32)


def matmul_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of what `pack_matmul` makes of a factor of this shape."""
    *batch, inner, columns = shape
    return (*batch, -(-columns // PANEL), inner, PANEL)


def conv2d_count(shape: Sequence[int], groups: int, block: int) -> int:
    """Return how many elements `pack_conv2d` makes of a weight of this shape."""
    outputs, channels, *kernel = shape
    taps, every = kernel[0] * kernel[1], channels * groups
    if groups == every == outputs > 1:
        return -(-outputs // BLOCK) * BLOCK * taps
    rows = every if groups == 1 else _most_blocks(shape, groups) * BLOCK
    return -(-outputs // PANEL) * rows * taps * PANEL


def conv2d_parts(weight: Any, groups: int, block: int) -> Iterator[Any]:
    """Yield what `pack_conv2d` makes, in order: an array for each panel of outputs."""
    import numpy as np

    outputs, channels, *kernel = weight.shape
    taps, every = kernel[0] * kernel[1], channels * groups
    if groups == every == outputs > 1:
        lanes = np.zeros((-(-outputs // BLOCK) * BLOCK, taps), np.float32)
        lanes[:outputs] = weight.reshape(outputs, taps)
        yield np.ascontiguousarray(lanes.reshape(-1, BLOCK, taps).swapaxes(1, 2))
        return
    inner = BLOCK if block == BLOCK or every >= BLOCK or groups > 1 else 1
    if groups == 1:
        blocks, rows = -(-every // inner), every
    else:  # each panel reads the blocks of its groups, and all read equally many
        blocks, rows = _most_blocks(weight.shape, groups), -(-every // BLOCK) * BLOCK
    for start in range(0, outputs, PANEL):
        begin, end, values = _rows_of_panel(weight, groups, start)
        whole = np.zeros((rows, taps, PANEL), stored_type(weight))
        whole[begin:end, :, : values.shape[2]] = values
        first = 0 if groups == 1 else min(begin // BLOCK, rows // BLOCK - blocks) * BLOCK
        begins = range(first, min(first + blocks * inner, rows), inner)
        yield np.concatenate([whole[at : at + inner].swapaxes(0, 1).ravel() for at in begins])


def _most_blocks(shape: Sequence[int], groups: int) -> int:
    """Return how many blocks of channels the panel reads that reads the most."""
    spans = (_channels_of_panel(shape, groups, first) for first in range(0, shape[0], PANEL))
    return max(-(-stop // BLOCK) - start // BLOCK for start, stop in spans)


def _channels_of_panel(shape: Sequence[int], groups: int, first: int) -> tuple[int, int]:
    """Return the channels that the panel of output `first` reads, from and to."""
    outputs, channels, *_ = shape
    per_group, end = outputs // groups, min(first + PANEL, outputs)
    return first // per_group * channels, ((end - 1) // per_group + 1) * channels


def _rows_of_panel(weight: Any, groups: int, first: int) -> tuple[int, int, Any]:
    """Return the channels that a panel reads, from and to, and (channels, taps, outputs)."""
    import numpy as np

    outputs, channels, *_ = weight.shape
    per_group, end = outputs // groups, min(first + PANEL, outputs)
    start, stop = _channels_of_panel(weight.shape, groups, first)
    values = np.zeros((stop - start, weight[0, 0].size, end - first), stored_type(weight))
    for output in range(first, end):
        of_group = output // per_group * channels - start
        values[of_group : of_group + channels, :, output - first] = weight[output].reshape(
            channels, -1
        )
    return start, stop, values
