"""The layouts of packed weights, written with NumPy during an export.

The C function `dso_op_matmul_pack` writes the same bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass

PANEL = 32  # adjacent outputs of a weight


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
