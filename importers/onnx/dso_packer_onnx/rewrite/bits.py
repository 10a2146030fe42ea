"""Products with a weight of integers in blocks, which stays integers: dso.MatMulBits.

DequantizeLinear with a block_size before a MatMul, as tools write weights of 4 and 8 bits. This
comes before constants are folded, which would make float32 of the weight.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from packer.operators import PANEL

from .graph import DSO, constant, dims, is_float32, is_node, made_by, new_node, optional, replace

_BLOCKS = (16, 32, 64, 128, 256)
_TYPES = (ir.DataType.INT4, ir.DataType.INT8, ir.DataType.UINT4, ir.DataType.UINT8)
_LEAST = PANEL // 2  # columns: fewer would be padded to more bytes than float32 has


def fuse_bits(model: ir.Model) -> int:
    """Let products read the integers of a weight; return how many.

    The weight is (inputs, columns) of 4 or 8 bits, and its blocks are along the inputs.
    """
    count = 0
    for node in list(model.graph):
        if not is_node(node, "MatMul") or not is_float32(*node.inputs):
            continue
        made = made_by(node.inputs[1], "DequantizeLinear")
        bits = 0 if made is None else _bits(made)
        if not bits or made is None:
            continue
        attributes = {"bits": bits, "block": made.attributes.get_int("block_size", 0)}
        attributes["has_zeros"] = _has_zeros(made)
        zeros = optional(made, 2) if _has_zeros(made) else None
        inputs = [node.inputs[0], made.inputs[0], None, None, made.inputs[1], zeros]
        replace(
            node,
            [
                new_node(
                    "MatMulBits",
                    inputs,
                    attributes,
                    like=node.outputs[0],
                    name=node.name,
                    domain=DSO,
                )
            ],
        )
        count += 1
    return count


def _bits(node: ir.Node) -> int:
    """Return the bits of a weight; 0 if the kernel cannot read it."""
    integers, scale = node.inputs[:2]
    shape, zeros = dims(integers) or (), optional(node, 2)
    if integers is None or integers.dtype not in _TYPES or not is_float32(scale):
        return 0
    constants = [integers, scale, *([zeros] if zeros is not None else [])]
    is_known = all(constant(one) is not None for one in constants)
    in_blocks = node.attributes.get_int("block_size", 0) in _BLOCKS
    first = node.attributes.get_int("axis", 1) % max(len(shape), 1) == 0
    if not (is_known and in_blocks and first) or len(shape) != 2:
        return 0
    if not isinstance(shape[1], int) or shape[1] < _LEAST:
        return 0
    array = signed(integers)
    return 4 if array.min(initial=0) >= -8 and array.max(initial=0) <= 7 else 8


def _has_zeros(node: ir.Node) -> bool:
    zeros = optional(node, 2)
    if zeros is None:
        return _is_unsigned(node.inputs[0])
    return bool(signed(zeros).any())


def _is_unsigned(value: ir.Value | None) -> bool:
    return value is not None and value.dtype in (ir.DataType.UINT4, ir.DataType.UINT8)


def signed(value: ir.Value | None) -> Any:
    """Return a constant of integers as int8; unsigned ones less half of their range."""
    array = np.asarray(constant(value))
    if not _is_unsigned(value) or value is None:
        return array.astype(np.int8)
    half = 8 if value.dtype == ir.DataType.UINT4 else 128
    return (array.astype(np.int16) - half).astype(np.int8)
