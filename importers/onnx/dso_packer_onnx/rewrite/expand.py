"""Operators that others make in a row: logarithms of sums, layers with batches first."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from .graph import Dim, dims, is_float32, is_node, new_node, new_weight, optional, replace

_GREATEST = np.float32(np.finfo(np.float32).max)


def expand_logarithms(model: ir.Model) -> int:
    """Replace float32 ReduceLogSum and ReduceLogSumExp by sums and logarithms; return how many."""
    count = 0
    for node in model.graph:
        is_of_logs = is_node(node, "ReduceLogSum", "ReduceLogSumExp")
        if not is_of_logs or not is_float32(node.inputs[0]):
            continue
        if node.attributes.get_int("noop_with_empty_axes", 0) or dims(node.outputs[0]) is None:
            continue
        is_exp = node.op_type == "ReduceLogSumExp"
        if is_exp and dims(node.inputs[0]) is None:
            continue
        replace(node, _of_powers(model, node) if is_exp else _logarithm(node, node.inputs[0]))
        count += 1
    return count


def _logarithm(node: ir.Node, value: ir.Value | None) -> list[ir.Node]:
    """Return the logarithm of the sum of a value, in the shape of the node's result."""
    inputs, attributes = [value, *node.inputs[1:]], node.attributes.values()
    total = new_node("ReduceSum", inputs, {a.name: a for a in attributes}, like=node.outputs[0])
    return [total, new_node("Log", total.outputs, like=node.outputs[0], name=node.name)]


def _of_powers(model: ir.Model, node: ir.Node) -> list[ir.Node]:
    """Return the logarithm of a sum of powers, none of which overflows."""
    x, out = node.inputs[0], node.outputs[0]
    axes = [optional(node, 1)] if optional(node, 1) is not None else []
    shape = dims(x) or ()
    greatest = new_node("ReduceMax", [x, *axes], shape=_kept(node, shape))
    limits = [new_weight(model, "limit", np.array(one)) for one in (-_GREATEST, _GREATEST)]
    finite = new_node("Clip", [*greatest.outputs, *limits], like=greatest.outputs[0])
    less = new_node("Sub", [x, *finite.outputs], shape=shape)
    power = new_node("Exp", less.outputs, shape=shape)
    made = [greatest, finite, less, power, *_logarithm(node, power.outputs[0])]
    most = finite
    if not node.attributes.get_int("keepdims", 1):
        most = new_node("Squeeze", [*finite.outputs, *axes], like=out)
        made.append(most)
    return [*made, new_node("Add", [made[5].outputs[0], *most.outputs], like=out)]


def _kept(node: ir.Node, shape: tuple[Dim, ...]) -> tuple[Dim, ...] | None:
    """Return a shape whose reduced axes have one element."""
    axes = optional(node, 1)
    if axes is None:
        return (1,) * len(shape)
    if axes.const_value is None:
        return None
    reduced = {int(axis) % len(shape) for axis in axes.const_value.numpy().reshape(-1)}
    return tuple(1 if axis in reduced else extent for axis, extent in enumerate(shape))


# How the axes of inputs and outputs turn, so that steps are first instead of batches.
_INPUTS = {0: (1, 0, 2), 5: (1, 0, 2), 6: (1, 0, 2)}
_OUTPUTS = ((2, 0, 1, 3), (1, 0, 2), (1, 0, 2))


def put_steps_first(model: ir.Model) -> int:
    """Put Transposes around each LSTM, GRU and RNN with batches first; return how many layers."""
    count = 0
    for node in model.graph:
        if not is_node(node, "LSTM", "GRU", "RNN") or not node.attributes.get_int("layout", 0):
            continue
        turned = {i: value for i in _INPUTS if (value := optional(node, i)) is not None}
        used = [one for one in node.outputs if one.uses() or one.is_graph_output()]
        if all(dims(value) is not None for value in (*turned.values(), *used)):
            _turn(node, turned, used)
            count += 1
    return count


def _turn(node: ir.Node, turned: dict[int, ir.Value], used: list[ir.Value]) -> None:
    """Replace a layer by one whose steps are first."""
    made = {i: _transposed(value, _INPUTS[i]) for i, value in turned.items()}
    inputs = [made[i].outputs[0] if i in made else one for i, one in enumerate(node.inputs)]
    others = [one for one in node.attributes.values() if one.name != "layout"]
    count = len(node.outputs)
    layer = ir.Node("", node.op_type, inputs, others, num_outputs=count, name=node.name)
    new = [*made.values(), layer]
    for old, value, perm in zip(node.outputs, layer.outputs, _OUTPUTS, strict=False):
        shape, value.type = dims(old), old.type
        if old in used and shape is not None:
            value.shape = ir.Shape([shape[perm.index(axis)] for axis in range(len(perm))])
            replace(node, [*new, _transposed(value, perm)], old=old)
            new = []


def _transposed(value: ir.Value, perm: tuple[int, ...]) -> ir.Node:
    shape = dims(value) or ()
    turned = [shape[axis] for axis in perm]
    return new_node("Transpose", [value], {"perm": perm}, shape=turned, dtype=value.dtype)
