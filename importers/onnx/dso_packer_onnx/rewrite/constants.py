"""Constants: computed once, while the model is imported."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx_ir as ir
from onnxscript.optimizer import FOLDED_FROM_KEY, fold_constants_ir

from ..quiet import quiet
from .clean import lift_constants, remove_identity
from .constant_nodes import fold_nodes
from .graph import constant, dims, ints, is_constant, is_node, new_weight, remove_unused
from .record import record_fold

LARGEST = 16 << 20  # bytes; a constant may be larger if its inputs are a quarter of it
MOST = 64 << 20  # bytes that all new constants of a model may have beyond their inputs

# Slow in Python, or of a size that only an evaluation shows: `fold_nodes` computes small ones.
_NEVER = {
    "Bernoulli",
    "AveragePool",
    "BlackmanWindow",
    "Col2Im",
    "Conv",
    "ConvInteger",
    "ConvTranspose",
    "DFT",
    "DeformConv",
    "GRU",
    "GridSample",
    "HammingWindow",
    "HannWindow",
    "LSTM",
    "LpPool",
    "MaxPool",
    "MaxUnpool",
    "MelWeightMatrix",
    "NonMaxSuppression",
    "QLinearConv",
    "RNN",
    "Resize",
    "RoiAlign",
    "STFT",
    "Upsample",
}


def fold_constants(model: ir.Model) -> int:
    """Compute nodes whose inputs are constants; return how many are gone.

    Most are computed by the constant folder of onnxscript, which also computes shapes that are
    known, and takes the branch of an If whose condition is a constant; `fold_nodes` computes the
    others. Both evaluate nodes by ONNX's reference implementation. A result is not larger than
    `LARGEST` or four times its inputs, and all results together not larger by more than `MOST`. A
    transposed weight of a product stays as it is: `fuse_matmul` reads it where it is.
    """
    before, may_fold = len(model.graph), _limits()
    lift_constants(model)
    _replace_cast_like(model)
    _fold_single(model, may_fold)
    while fold_nodes(model, may_fold):
        _fold_single(model, may_fold)
    return before - len(model.graph)


def fold_quantised(model: ir.Model) -> None:
    """Compute each QuantizeLinear of constants: training with quantisation writes it of weights."""
    may_fold = _limits()
    lift_constants(model)
    if any(is_node(node, "QuantizeLinear") and is_constant(node.inputs[0]) for node in model.graph):
        _fold_single(model, lambda node: is_node(node, "QuantizeLinear") and may_fold(node))


def _fold_single(model: ir.Model, may_fold: Callable[[ir.Node], bool]) -> None:
    """Compute nodes of one result."""
    names = list(model.graph.initializers)
    with quiet("onnxscript"):  # a node that it cannot evaluate stays
        fold_constants_ir(
            model,
            onnx_shape_inference=False,
            input_size_limit=0,
            output_size_limit=2**62,
            should_fold=lambda node: node.op_type not in _NEVER and may_fold(node),
        )
    lift_constants(model)
    remove_identity(model)
    _record(model, names)


def _record(model: ir.Model, names: list[str]) -> None:
    initializers = model.graph.initializers
    gone = {name for name in names if name not in initializers}
    for value in initializers.values():
        for name in gone & set(value.meta.get(FOLDED_FROM_KEY, ())):
            record_fold(model, ir.Value(name=name), value, "a constant expression of it")


def _replace_cast_like(model: ir.Model) -> None:
    """Make each CastLike a Cast; onnxscript does, too, but forgets the attribute `saturate`."""
    for node in model.graph:
        if is_node(node, "CastLike") and node.inputs[1] is not None and node.inputs[1].dtype:
            node.attributes.add(ir.AttrInt64("to", int(node.inputs[1].dtype)))
            node.op_type = "Cast"
            node.resize_inputs(1)


def _limits() -> Callable[[ir.Node], bool]:
    grown = 0

    def may_fold(node: ir.Node) -> bool:
        nonlocal grown
        if node.domain or not node.outputs:
            return False
        if is_node(node, "Transpose") and _feeds_products(node):
            return False
        before = sum(value.const_value.nbytes for value in node.inputs if value is not None)
        after = _bytes(node)
        if after is None or after > max(LARGEST, 4 * before) or grown + after - before > MOST:
            return False
        grown += max(0, after - before)
        return True

    return may_fold


def _feeds_products(node: ir.Node) -> bool:
    """Return True if a transposed matrix is only multiplied."""
    perm = node.attributes.get_ints("perm", None)
    shape = dims(node.inputs[0])
    if shape is None or len(shape) != 2 or (perm is not None and list(perm) != [1, 0]):
        return False
    output = node.outputs[0]
    readers = [use.node for use in output.uses()]
    return bool(readers) and all(is_node(reader, "MatMul") for reader in readers)


def _bytes(node: ir.Node) -> int | None:
    """Return the size of the result, computed without the result; None if it is not known."""
    count = _SIZES[node.op_type](node) if node.op_type in _SIZES else _by_shape(node)
    dtype = node.outputs[0].dtype
    if count is None or dtype is None or dtype == ir.DataType.STRING:
        return None
    return math.ceil(count * float(dtype.itemsize))


def _by_shape(node: ir.Node) -> int | None:
    shape = dims(node.outputs[0])
    if shape is None or not all(isinstance(extent, int) for extent in shape):
        # Of the operators that are left, none returns more elements than it reads.
        sizes = [value.const_value.size for value in node.inputs if value is not None]
        return int(max(sizes, default=0)) * 8 if sum(sizes) < 1 << 12 else None
    return math.prod(int(extent) for extent in shape)


def _expanded(node: ir.Node) -> int | None:
    target, shape = ints(node.inputs[1]), dims(node.inputs[0])
    if target is None or shape is None:
        return None
    rank = max(len(target), len(shape))
    both = zip(
        [1] * (rank - len(target)) + target,
        [1] * (rank - len(shape)) + [int(d) for d in shape],
        strict=True,
    )
    return math.prod(max(a, b) for a, b in both)


def _tiled(node: ir.Node) -> int | None:
    repeats = ints(node.inputs[1])
    return None if repeats is None else int(node.inputs[0].const_value.size) * math.prod(repeats)


def _filled(node: ir.Node) -> int | None:
    shape = ints(node.inputs[0])
    return None if shape is None else math.prod(shape)


def _ranged(node: ir.Node) -> int | None:
    start, limit, delta = (float(np.asarray(constant(value)).reshape(())) for value in node.inputs)
    return None if delta == 0 else max(0, math.ceil((limit - start) / delta))


def _one_hot(node: ir.Node) -> int | None:
    depth = ints(node.inputs[1])
    return None if not depth else int(node.inputs[0].const_value.size) * depth[0]


def _padded(node: ir.Node) -> int | None:
    """Return an upper bound: each axis that a Pad names grows by its two pads."""
    pads = ints(node.inputs[1])
    if pads is None:
        return None
    axes = len(pads) // 2
    added = [max(0, pads[axis]) + max(0, pads[axis + axes]) for axis in range(axes)]
    return int(node.inputs[0].const_value.size) * math.prod(1 + pad for pad in added)


_SIZES: dict[str, Callable[[ir.Node], int | None]] = {
    "ConstantOfShape": _filled,
    "Expand": _expanded,
    "OneHot": _one_hot,
    "Pad": _padded,
    "Range": _ranged,
    "Tile": _tiled,
}


def fix_shapes(model: ir.Model) -> int:
    """Make the computed shape of each Reshape and Expand a constant where it is known.

    One symbolic extent of a Reshape is -1, so that a symbolic batch needs no arithmetic. Returns
    how many changed.
    """
    count = 0
    for node in list(model.graph):
        if not is_node(node, "Reshape", "Expand") or is_constant(node.inputs[1]):
            continue
        shape = dims(node.outputs[0])
        if shape is None or sum(not isinstance(extent, int) for extent in shape) > (
            node.op_type == "Reshape"
        ):
            continue
        if 0 in shape:
            continue
        target = [extent if isinstance(extent, int) else -1 for extent in shape]
        fixed = new_weight(model, f"{node.outputs[0].name}.shape", np.array(target, np.int64))
        old = node.inputs[1]
        node.replace_input_with(1, fixed)
        maker = old.producer()
        if maker is not None:
            remove_unused(maker)
        count += 1
    return count
