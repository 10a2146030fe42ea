"""Products and tables of integers in blocks, which stay integers: dso.MatMulBits and dso.RowsBits.

DequantizeLinear with a block_size before a MatMul or a Gather, as tools write weights of 4 and 8
bits. This comes before constants are folded, which would make float32 of the weight.
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
    """Let products and tables read the integers of a weight; return how many.

    The weight is (inputs, columns) of 4 or 8 bits, and its blocks are along the inputs; a table is
    (rows, elements), with blocks along the elements, and so is a weight that is transposed.
    """
    count = 0
    for node in list(model.graph):
        found = _weight_of(node)
        made = None if found is None else made_by(found[0], "DequantizeLinear")
        if found is None or made is None or not is_float32(node.outputs[0]):
            continue
        is_transposed, is_table = found[1], is_node(node, "Gather")
        bits = _bits(made, int(is_transposed))
        if not bits:
            continue
        attributes = {"bits": bits, "block": made.attributes.get_int("block_size", 0)}
        attributes["has_zeros"] = _has_zeros(made)
        if is_transposed and not is_table:
            attributes["trans_b"] = 1
        zeros = optional(made, 2) if _has_zeros(made) else None
        pair = [made.inputs[0], node.inputs[1]] if is_table else [node.inputs[0], made.inputs[0]]
        bias = None if is_table else optional(node, 2)
        inputs = [*pair, bias, None, made.inputs[1], zeros]
        kind, like = "RowsBits" if is_table else "MatMulBits", node.outputs[0]
        new = new_node(kind, inputs, attributes, like=like, name=node.name, domain=DSO)
        replace(node, [new])
        count += 1
    return count


def _weight_of(node: ir.Node) -> tuple[ir.Value | None, bool] | None:
    """Return the weight of a product or a table, and whether its rows are the columns."""
    if is_node(node, "Gather"):
        return None if node.attributes.get_int("axis", 0) else (node.inputs[0], True)
    if is_node(node, "MatMul"):
        turned = made_by(node.inputs[1], "Transpose")
        if turned is None or len(dims(turned.inputs[0]) or ()) != 2:
            return node.inputs[1], False
        return turned.inputs[0], turned.attributes.get_ints("perm", (1, 0)) == (1, 0)
    if not is_node(node, "Gemm") or node.attributes.get_int("transA", 0):
        return None
    bias, columns = optional(node, 2), (dims(node.outputs[0]) or ())[1:]
    is_plain = all(node.attributes.get_float(name, 1.0) == 1.0 for name in ("alpha", "beta"))
    if not is_plain or (bias is not None and dims(bias) != columns):
        return None
    return node.inputs[1], bool(node.attributes.get_int("transB", 0))


def _bits(node: ir.Node, axis: int) -> int:
    """Return the bits of a weight with blocks along an axis; 0 if the kernel cannot read it."""
    integers, scale = node.inputs[:2]
    shape, zeros = dims(integers) or (), optional(node, 2)
    if integers is None or integers.dtype not in _TYPES or not is_float32(scale):
        return 0
    constants = [integers, scale, *([zeros] if zeros is not None else [])]
    is_known = all(constant(one) is not None for one in constants)
    in_blocks = node.attributes.get_int("block_size", 0) in _BLOCKS
    is_along = node.attributes.get_int("axis", 1) % max(len(shape), 1) == axis
    if not (is_known and in_blocks and is_along) or len(shape) != 2:
        return 0
    columns = shape[1 - axis]
    if not isinstance(columns, int) or columns < _LEAST:
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
