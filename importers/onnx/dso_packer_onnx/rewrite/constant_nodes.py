"""Nodes of constants that onnxscript's folder leaves: of several results, and slow ones."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import onnx_ir as ir

from ..read.evaluate import reference
from ..read.resized import PLACES
from .graph import Array, constant, dims, is_node, new_node, new_weight, replace
from .record import record_fold
from .resize import Given, extents_of, scales_of

_RANDOM = {"Bernoulli", "Dropout", "Multinomial"}  # and all that begin with Random
# How many elements a result may have, of operators that take long for each.
_FEW = 1 << 14
_MOST = {"Conv": 1 << 18, "DFT": 1 << 18, "GRU": 1 << 18, "LSTM": 1 << 18, "RNN": 1 << 18}
_MOST |= dict.fromkeys(("AveragePool", "Col2Im", "ConvInteger", "ConvTranspose"), _FEW)
_MOST |= dict.fromkeys(("DeformConv", "GridSample", "LpPool", "MaxPool", "MaxUnpool"), _FEW)
_MOST |= dict.fromkeys(("NonMaxSuppression", "QLinearConv", "RoiAlign", "STFT", "Unique"), _FEW)
_MOST_OF_AXIS = 1 << 15  # factors of one axis of a Resize


def fold_nodes(model: ir.Model, may_fold: Callable[[ir.Node], bool]) -> int:
    """Compute nodes whose inputs are constants, of known shapes; return how many.

    `may_fold` limits the size of all results. Each operator is evaluated by ONNX's reference
    implementation, and Resize by one product for each axis.
    """
    count = 0
    for node in list(model.graph):
        if not _is_constant_node(node) or not may_fold(node):
            continue
        made = _resized(node) if is_node(node, "Resize") else _evaluated(node)
        pairs = list(zip(node.outputs, made, strict=False))
        used = [(value, array) for value, array in pairs if value.uses() or value.is_graph_output()]
        if not used or not all(_is_of(array, value) for value, array in used):
            continue
        for value, array in used:
            weight = new_weight(model, f"{value.name}/constant", array)
            for source in filter(None, node.inputs):
                record_fold(model, source, weight, f"a constant expression of it, {node.name!r}")
            replace(node, [], value=weight, old=value)
        count += 1
    return count


def _is_constant_node(node: ir.Node) -> bool:
    values = [value for value in node.inputs if value is not None]
    if node.domain or node.op_type in _RANDOM or node.op_type.startswith("Random") or not values:
        return False
    if not all(value.const_value is not None and not value.is_graph_input() for value in values):
        return False
    if any(attribute.type == ir.AttributeType.GRAPH for attribute in node.attributes.values()):
        return False
    shapes = [dims(value) for value in node.outputs if value.uses() or value.is_graph_output()]
    if any(shape is None or not all(isinstance(e, int) for e in shape) for shape in shapes):
        return False
    most = _MOST.get(node.op_type)
    return most is None or all(prod(map(int, shape or ())) <= most for shape in shapes)


def _evaluated(node: ir.Node) -> list[Array]:
    arrays = {value: array for value in node.inputs if (array := constant(value)) is not None}
    return reference(node, ir.serde.serialize_node(node), arrays)


def _is_of(array: Array, value: ir.Value) -> bool:
    return array.shape == dims(value) and bool(ir.DataType.from_numpy(array.dtype) == value.dtype)


def _resized(node: ir.Node) -> list[Array]:
    """Return a constant of other extents, axis by axis; nothing where axes are not separate."""
    attributes, array = node.attributes, constant(node.inputs[0])
    before, after = extents_of(node.inputs[0]), extents_of(node.outputs[0])
    scales = scales_of(node, before, after)
    places = attributes.get_string("coordinate_transformation_mode", "half_pixel")
    is_stretched = attributes.get_string("keep_aspect_ratio_policy", "stretch") == "stretch"
    if array is None or places not in PLACES or not is_stretched:
        return []
    if array.dtype.kind != "f" or not np.all(np.isfinite(array)):
        return []
    made = array.astype(np.float64)
    for axis, scale in enumerate(scales):
        if scale == 1.0:
            continue
        if isinstance(scale, Given):
            return []
        factors = _factors(node, array.shape[axis], int(after[axis]), scale)
        if factors is None:
            return []
        made = np.moveaxis(np.tensordot(made, factors, (axis, 0)), -1, axis)
    return [made.astype(array.dtype)]


def _factors(node: ir.Node, before: int, after: int, scale: float | None) -> Array | None:
    """Return the share of each element of an axis in each result: (before, after).

    None if they are many, and for the nearest element where a quotient is rounded.
    """
    mode = node.attributes.get_string("mode", "nearest")
    ratio = after / before if scale is None else scale
    if before * after > _MOST_OF_AXIS or (mode == "nearest" and ratio != int(ratio)):
        return None
    last = ir.Value(name="given")
    given = np.array([after]) if scale is None else np.array([scale], np.float32)
    x, left = ir.Value(name="x"), [None] * (2 if scale is None else 1)
    left_out = ("axes", "keep_aspect_ratio_policy")
    how = {key: item for key, item in node.attributes.items() if key not in left_out}
    axis = new_node("Resize", [x, *left, last], how, name="axis")
    axis.outputs[0].name = "y"
    ir.Graph([x, last], axis.outputs, nodes=[axis], opset_imports={"": 23})
    proto, rows = ir.serde.serialize_node(axis), []
    for row in np.eye(before, dtype=np.float32):
        made = reference(axis, proto, {x: row, last: given})
        if not made or made[0].shape != (after,):
            return None
        rows.append(made[0].astype(np.float64))
    return np.stack(rows)
