"""Values of float16 and bfloat16 that are computed as float32.

Operators around a product, a convolution, a pool or a reduction keep their results as float32, as
ONNX Runtime does, so that kernels and rewrites of float32 serve. A Cast is left where such values
begin and end. Weights of products and convolutions remain halves, which the kernels widen.
"""

from __future__ import annotations

from math import prod

import numpy as np
import onnx_ir as ir

from .graph import (
    HALVES,
    constant,
    dims,
    is_constant,
    is_node,
    made_by,
    new_node,
    new_weight,
)
from .record import record_fold
from .regions import EACH, region

MOST_TAPS = 49  # of a window whose weights are halves; tile.c
# Operators that sum or compare many elements: what is joined to them is float32 too.
_SEEDS = {
    *("Conv", "ConvTranspose", "GRU", "Gemm", "LSTM", "MatMul", "RNN"),
    *("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool", "Resize"),
    *("GroupNormalization", "InstanceNormalization", "LayerNormalization", "RMSNormalization"),
    *("CumSum", "LogSoftmax", "ReduceL1", "ReduceL2", "ReduceMax", "ReduceMean", "ReduceMin"),
    *("ReduceProd", "ReduceSum", "ReduceSumSquare", "Softmax", "TopK"),
}
_MOVES = {
    *("DepthToSpace", "Expand", "Flatten", "Gather", "Pad", "Reshape", "Slice", "SpaceToDepth"),
    *("Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"),
}
_MEMBERS = (EACH | _MOVES | _SEEDS) - {"DequantizeLinear", "QuantizeLinear"}
_BETWEEN = {ir.DataType.FLOAT, *HALVES}  # of a Cast that becomes none


def widen_halves(model: ir.Model) -> int:
    """Compute with float32 what operators of halves that sum or compare are joined to.

    Returns how many operators do so. Products of bfloat16 remain, which have a kernel.
    """
    found = region(model, lambda node: node.op_type in _SEEDS and _is_member(node), _is_member)
    wide: dict[ir.Value, ir.Value] = {}
    members = set(found)
    for node in found:
        for index, value in enumerate(node.inputs):
            if _is_half(value) and value.producer() not in members and not _stays(node, index):
                node.replace_input_with(index, _widened(model, node, value, wide))
        if node.op_type == "Cast":
            node.attributes.add(ir.AttrInt64("to", int(ir.DataType.FLOAT)))
    for node in found:
        for value in filter(_is_half, node.outputs):
            _narrow(node, value, members)
    return len(found)


def widen_weights(model: ir.Model) -> int:
    """Widen the weights that no kernel took as halves; return how many."""
    count = 0
    for node in model.graph:
        if not is_node(node, "Conv", "Gemm", "MatMul") or _is_half(node.outputs[0]):
            continue
        for index, value in enumerate(node.inputs):
            if _is_half(value):
                node.replace_input_with(index, _widened(model, node, value, {}))
                count += 1
    return count


def _is_half(value: ir.Value | None) -> bool:
    return value is not None and value.dtype in HALVES


def _is_member(node: ir.Node) -> bool:
    """Return True for an operator that may compute with float32 in place of halves."""
    if node.domain or node.op_type not in _MEMBERS or not any(map(_is_half, _values(node))):
        return False
    if node.op_type == "Cast":
        return all(value.dtype in _BETWEEN for value in _values(node))
    if node.op_type in ("Gemm", "MatMul") and node.outputs[0].dtype == ir.DataType.BFLOAT16:
        return False
    is_table = node.op_type == "Gather" and is_constant(node.inputs[0])  # stored as halves
    return not is_table and not all(map(is_constant, filter(_is_half, node.inputs)))


def _values(node: ir.Node) -> list[ir.Value]:
    return [value for value in (*node.inputs, *node.outputs) if value is not None]


def _stays(node: ir.Node, index: int) -> bool:
    """Return True for a constant factor whose kernel widens it."""
    value = node.inputs[index]
    if index != 1 or not is_node(node, "Conv", "Gemm", "MatMul"):
        return False
    turned = made_by(value, "Transpose") if node.op_type == "MatMul" else None
    shape = dims(value) or ()
    if not is_constant(value if turned is None else turned.inputs[0]) or len(shape) < 2:
        return False
    if node.op_type != "Conv":
        return True
    return shape[1] != 1 and prod(int(extent) for extent in shape[2:]) <= MOST_TAPS


def _widened(
    model: ir.Model, node: ir.Node, value: ir.Value, wide: dict[ir.Value, ir.Value]
) -> ir.Value:
    """Return a value as float32: another constant, or a Cast before the node."""
    if value not in wide:
        array = constant(value)
        if array is not None:
            wide[value] = new_weight(model, str(value.name), array.astype(np.float32))
            record_fold(model, value, wide[value], "as float32")
        else:
            to = {"to": int(ir.DataType.FLOAT)}
            cast = new_node("Cast", [value], to, shape=dims(value), name=f"{value.name}/float32")
            node.graph.insert_before(node, cast)
            wide[value] = cast.outputs[0]
    return wide[value]


def _narrow(node: ir.Node, value: ir.Value, members: set[ir.Node]) -> None:
    """Make an output float32; others read it after a Cast, except Shape."""
    kept = {*members, *(reader for reader, _ in value.uses() if is_node(reader, "Shape"))}
    others = [(reader, at) for reader, at in value.uses() if reader not in kept]
    half = value.dtype
    value.type = ir.TensorType(ir.DataType.FLOAT)
    if not others and not value.is_graph_output():
        return
    assert half is not None
    cast = new_node("Cast", [value], {"to": int(half)}, shape=dims(value), dtype=half)
    node.graph.insert_after(node, cast)
    (made,) = cast.outputs
    for reader, at in others:
        reader.replace_input_with(at, made)
    if value.is_graph_output():
        made.name, value.name = value.name, f"{value.name}/float32"
        for index, output in enumerate(node.graph.outputs):
            if output is value:
                node.graph.outputs[index] = made
