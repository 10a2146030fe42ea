"""The layouts of packed weights, written with NumPy during an export.

The C functions `dso_op_conv2d_pack` and `dso_op_matmul_pack` write the same bytes.
"""

from __future__ import annotations

from typing import Any

PANEL = 32  # adjacent outputs of a weight
BLOCK = 16  # adjacent channels of a picture


def pack_matmul(b: Any) -> Any:
    """Pack the right factor of a matrix product.

    Parameters
    ----------
    b : ndarray
        The shape is (..., inner, columns). A transposed view of a weight is fine.

    Returns
    -------
    ndarray
        float32, C-contiguous: (..., columns / 32 rounded up, inner, 32), with zeros for the columns
        that are missing. The caller owns it.
    """
    import numpy as np

    *batch, inner, columns = b.shape
    panels = -(-columns // PANEL)
    packed = np.zeros((*batch, inner, panels * PANEL), np.float32)
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
        float32 of one dimension. The caller owns it.
    """
    import numpy as np

    outputs, channels, *kernel = weight.shape
    taps, every = kernel[0] * kernel[1], channels * groups
    if groups == every == outputs > 1:
        lanes = np.zeros((-(-outputs // BLOCK) * BLOCK, taps), np.float32)
        lanes[:outputs] = weight.reshape(outputs, taps)
        return np.ascontiguousarray(lanes.reshape(-1, BLOCK, taps).swapaxes(1, 2)).ravel()
    inner = BLOCK if block == BLOCK or every >= BLOCK or groups > 1 else 1
    panels = [_rows_of_panel(weight, groups, first) for first in range(0, outputs, PANEL)]
    if groups == 1:
        blocks, rows = -(-every // inner), every
    else:  # each panel reads the blocks of its groups, and all read equally many
        blocks = max(-(-stop // BLOCK) - start // BLOCK for start, stop, _ in panels)
        rows = -(-every // BLOCK) * BLOCK
    written = []
    for start, stop, values in panels:
        whole = np.zeros((rows, taps, PANEL), np.float32)
        whole[start:stop, :, : values.shape[2]] = values
        first = 0 if groups == 1 else min(start // BLOCK, rows // BLOCK - blocks) * BLOCK
        begins = range(first, min(first + blocks * inner, rows), inner)
        written += [whole[begin : begin + inner].swapaxes(0, 1).ravel() for begin in begins]
    return np.concatenate(written)


def _rows_of_panel(weight: Any, groups: int, first: int) -> tuple[int, int, Any]:
    """Return the channels that a panel reads, from and to, and (channels, taps, outputs)."""
    import numpy as np

    outputs, channels, *_ = weight.shape
    per_group, end = outputs // groups, min(first + PANEL, outputs)
    start = first // per_group * channels
    stop = ((end - 1) // per_group + 1) * channels
    values = np.zeros((stop - start, weight[0, 0].size, end - first), np.float32)
    for output in range(first, end):
        of_group = output // per_group * channels - start
        values[of_group : of_group + channels, :, output - first] = weight[output].reshape(
            channels, -1
        )
    return start, stop, values
