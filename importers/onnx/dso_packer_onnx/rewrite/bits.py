"""Products and tables of integers in blocks, which stay integers: dso.MatMulBits and dso.RowsBits.

DequantizeLinear with a block_size before a MatMul or a Gather, as tools write weights of 4 and 8
bits. This comes before constants are folded, which would make float32 of the weight. Weights of 4
bits that a convolution or an elementwise operator reads remain, too: dso.Unpack makes float32 of
them in each call.
"""

from __future__ import annotations

from math import gcd, prod
from typing import Any

import numpy as np
import onnx_ir as ir

from packer.operators import PANEL

from .graph import (
    DSO,
    constant,
    dims,
    is_float32,
    is_node,
    made_by,
    new_node,
    new_weight,
    optional,
    replace,
)

_BLOCKS = (16, 32, 64, 128, 256)
_TYPES = (ir.DataType.INT4, ir.DataType.INT8, ir.DataType.UINT4, ir.DataType.UINT8)
_NIBBLES = (ir.DataType.INT4, ir.DataType.UINT4)
_LEAST = PANEL // 2  # columns: fewer would be padded to more bytes than float32 has
_SMALL = 1024  # elements of a weight that becomes float32
_PIXELS = 784  # of a convolution's result: with fewer, float32 for each call costs too much
_READERS = {"Add", "Div", "Max", "Min", "Mul", "Pow", "Sub", "Where"}


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
        form = _in_blocks(model, made, int(is_transposed)) if bits else None
        if form is None:
            continue
        block, scales, zeros = form
        attributes = {"bits": bits, "block": block, "has_zeros": _has_zeros(made)}
        if is_transposed and not is_table:
            attributes["trans_b"] = 1
        pair = [made.inputs[0], node.inputs[1]] if is_table else [node.inputs[0], made.inputs[0]]
        bias = None if is_table else optional(node, 2)
        inputs = [*pair, bias, None, scales, zeros]
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
    """Return the bits of a matrix of integers; 0 if the kernel cannot read it."""
    integers = node.inputs[0]
    shape = dims(integers) or ()
    if not _is_constant_of(node, _TYPES) or len(shape) != 2:
        return 0
    columns = shape[1 - axis]
    if not isinstance(columns, int) or columns < _LEAST:
        return 0
    array = signed(integers)
    return 4 if array.min(initial=0) >= -8 and array.max(initial=0) <= 7 else 8


def _is_constant_of(node: ir.Node, types: tuple[ir.DataType, ...]) -> bool:
    """Return True if a DequantizeLinear has constants, integers of these types."""
    integers, scale, zeros = (*node.inputs, None)[:3]
    known = [integers, scale, *([zeros] if optional(node, 2) is not None else [])]
    is_known = all(constant(one) is not None for one in known)
    return is_known and integers is not None and integers.dtype in types and is_float32(scale)


def _in_blocks(
    model: ir.Model, node: ir.Node, axis: int
) -> tuple[int, ir.Value | None, ir.Value | None] | None:
    """Return the size of blocks along an axis, their scales and zeros; None if it has no blocks.

    Scales of 4 bits are repeated if they are for other blocks, for each column or for all.
    """
    integers, scale = node.inputs[:2]
    zeros = optional(node, 2) if _has_zeros(node) else None
    size = node.attributes.get_int("block_size", 0)
    is_along = node.attributes.get_int("axis", 1) % 2 == axis
    if size in _BLOCKS and is_along:
        return size, scale, zeros
    block = gcd(size, max(_BLOCKS))
    is_single = not size and np.asarray(constant(scale)).size == 1
    has_rows = is_single or is_along == bool(size)
    if integers is None or scale is None or integers.dtype not in _NIBBLES or not has_rows:
        return None
    if block not in _BLOCKS:
        return None
    shape = [int(extent) for extent in dims(integers) or ()]
    shape[axis] = -(-shape[axis] // block)

    def spread(array: Any) -> Any:
        if size:
            return np.repeat(array, size // block, axis).take(range(shape[axis]), axis)
        return np.broadcast_to(array if array.size == 1 else np.expand_dims(array, axis), shape)

    scales = new_weight(model, f"{scale.name}.blocks", spread(np.asarray(constant(scale))))
    if zeros is not None:
        zeros = new_weight(model, f"{zeros.name}.blocks", spread(signed(zeros)))
    return block, scales, zeros


def unpack_bits(model: ir.Model) -> int:
    """Let convolutions and elementwise operators read weights of 4 bits; return how many."""
    count = 0
    for node in list(model.graph):
        if not is_node(node, "DequantizeLinear") or not _is_constant_of(node, _NIBBLES):
            continue
        (out,), shape = node.outputs, dims(node.inputs[0]) or (1,)
        readers = [(use.node, use.idx) for use in out.uses()]
        is_read = bool(readers) and all(_reads_unpacked(*reader) for reader in readers)
        if prod(map(int, shape)) < _SMALL or not is_float32(out) or not is_read:
            continue
        size = node.attributes.get_int("block_size", 0)
        attributes = {"axis": node.attributes.get_int("axis", 1) % len(shape), "block": size}
        inputs, zeros = [*node.inputs[:2]], optional(node, 2)
        if zeros is not None:
            array = np.asarray(constant(zeros)).astype(np.float32)
            inputs.append(new_weight(model, f"{zeros.name}.float32", array))
        replace(
            node, [new_node("Unpack", inputs, attributes, like=out, name=node.name, domain=DSO)]
        )
        count += 1
    return count


def _reads_unpacked(node: ir.Node, index: int) -> bool:
    if is_node(node, "Conv") and index == 1:
        pixels = (dims(node.outputs[0]) or ())[2:]
        is_open = not all(isinstance(extent, int) for extent in pixels)
        return is_open or prod(map(int, pixels)) >= _PIXELS
    return is_node(node, *_READERS)


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
