"""Weights of 4 and 8 bits in the order of their kernel, as float32 arrays of their shape.

The inverse of ``packer.operators.pack_matmul_bits``, times the scales. It needs NumPy.
"""

from __future__ import annotations

from math import prod

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PANEL = 32


def matmul_bits(flat: Any, shape: tuple[int, ...], form: Mapping[str, Any]) -> Any:
    """Return the matrix; ValueError if the entry does not fit it."""
    import numpy as np

    bits, block = form.get("bits"), form.get("block")
    if bits not in (4, 8) or block not in (16, 32, 64, 128, 256) or len(shape) != 2:
        raise ValueError(f"bits {bits!r} and block {block!r} of a matrix of shape {shape!r}")
    is_transposed = bool(form.get("transposed"))
    inner, columns = shape[::-1] if is_transposed else shape
    before = 2 if form.get("zeros") else 1  # rows
    sizes = (-(-columns // PANEL), -(-inner // block), before + block * bits // 32, PANEL)
    if flat.dtype != np.int32 or flat.size != prod(sizes):
        raise ValueError(f"{flat.size} elements of {flat.dtype}, expected {prod(sizes)} of int32")
    packed = flat.reshape(sizes)
    factors = np.ascontiguousarray(packed[:, :, :before]).view(np.float32)
    firsts = [8 * (index % 4) + 4 * (index // 4) for index in range(32 // bits)]
    parts = [packed[:, :, before:] << (32 - bits - bit) >> (32 - bits) for bit in firsts]
    integers = np.stack(parts, 3)  # panels, blocks, words, inputs of a word, columns
    zeros = factors[:, :, 1, None, None] if before > 1 else np.float32(0)
    values = (integers - zeros) * factors[:, :, 0, None, None]
    matrix = values.reshape(sizes[0], -1, PANEL).swapaxes(0, 1).reshape(-1, sizes[0] * PANEL)
    matrix = matrix[:inner, :columns].astype(np.float32)
    return np.ascontiguousarray(matrix.T if is_transposed else matrix)
