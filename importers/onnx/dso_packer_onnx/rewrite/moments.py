"""Normalizations spelled out, of groups of channels, and with their factors apart."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx_ir as ir

from .arrange import reshape_node
from .graph import (
    DSO,
    constant,
    dims,
    ints,
    is_float32,
    is_node,
    made_by,
    new_node,
    new_weight,
    only_first_output,
    only_reads,
    only_use,
    optional,
    other_input,
    replace,
    same_shape,
    scalar,
)
from .normalize import is_row
from .record import record_fold
from .views import Size, sizes


def fuse_moments(model: ir.Model) -> int:
    """Replace x / sqrt(mean(x * x) + epsilon) of the last axes by dso.Normalize; return how many.

    This is the RMS normalization; if x is a value minus its mean, the layer normalization of the
    value. The root may be divided by, or its reciprocal multiplied. Factors are left apart.
    """
    count = 0
    for root in list(model.graph):
        if root.graph is None or not is_node(root, "Sqrt") or not is_float32(root.inputs[0]):
            continue
        found = _last(root)
        mean = _mean_of_squares(root.inputs[0])
        if found is None or mean is None or found[0] is not mean[0]:
            continue
        (x, last), (_, axis, epsilon) = found, mean
        kind, centred = "rms", made_by(x, "Sub")
        if centred is not None and _mean_axis(centred.inputs[1], centred.inputs[0]) == axis:
            kind, x = "layer", centred.inputs[0]
        attributes = {"kind": kind, "axis": axis, "epsilon": epsilon}
        new = new_node("Normalize", [x], attributes, like=last.outputs[0], domain=DSO)
        replace(last, [new])
        count += 1
    return count


def _last(root: ir.Node) -> tuple[ir.Value, ir.Node] | None:
    """Return x and the node that divides it by a root."""
    node = only_use(root.outputs[0])
    if node is not None and is_node(node, "Div") and node.inputs[1] is root.outputs[0]:
        return node.inputs[0], node
    if node is None or not is_node(node, "Reciprocal"):
        return None
    value = node.outputs[0]
    last = only_use(value)
    if last is None or not is_node(last, "Mul"):
        return None
    return other_input(last, value), last


def _mean_of_squares(value: ir.Value) -> tuple[ir.Value, int, float] | None:
    """Return x, the first axis and epsilon of mean(x * x) + epsilon."""
    add = made_by(value, "Add")
    if add is None:
        return None
    for mean, epsilon in (add.inputs, reversed(add.inputs)):
        number = scalar(epsilon)
        made = made_by(mean, "ReduceMean")
        if number is None or made is None:
            continue
        square = made.inputs[0].producer()
        if (is_node(square, "Mul") and square.inputs[0] is square.inputs[1]) or (
            is_node(square, "Pow") and scalar(square.inputs[1]) == 2.0
        ):
            x = square.inputs[0]
        else:
            return None
        axis = _mean_axis(mean, made.inputs[0])
        return None if axis is None else (x, axis, number)
    return None


def _mean_axis(mean: ir.Value | None, value: ir.Value | None) -> int | None:
    """Return the first axis of a mean over the last axes, which it keeps with extent 1."""
    node, shape = made_by(mean, "ReduceMean"), dims(value)
    if node is None or node.inputs[0] is not value or shape is None:
        return None
    axes = ints(optional(node, 1))
    if axes is None or not node.attributes.get_int("keepdims", 1):
        return None
    last = sorted(axis % len(shape) for axis in axes)
    static = all(isinstance(extent, int) for extent in shape[last[0] :]) if last else False
    return last[0] if static and last == [*range(last[0], len(shape))] else None


def fuse_row_factors(model: ir.Model) -> int:
    """Make a Mul by a row after dso.Normalize its scale, and an Add of a row its bias.

    Returns how many nodes were fused.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "Mul", "Add") or not is_float32(*node.inputs):
            continue
        for value in node.inputs:
            made = made_by(value, "Normalize", domain=DSO)
            if made is None or not only_reads(node, value):
                continue
            row = _row(model, made, node, value)
            if row is None or not same_shape(value, node.outputs[0]):
                continue
            inputs = [made.inputs[0], *row]
            new = new_node(
                "Normalize",
                inputs,
                made.attributes,
                like=node.outputs[0],
                name=made.name,
                domain=DSO,
            )
            replace(node, [new])
            count += 1
            break
    return count


def _row(
    model: ir.Model, made: ir.Node, node: ir.Node, value: ir.Value
) -> list[ir.Value | None] | None:
    """Return the scale and the bias of a normalization with one more factor."""
    if made.attributes.get_string("kind") == "softmax":
        return None
    scale, bias, factor = optional(made, 1), optional(made, 2), other_input(node, value)
    row = (dims(value) or ())[made.attributes.get_int("axis") :]
    if factor is None or bias is not None or (node.op_type == "Mul" and scale is not None):
        return None
    if not is_row(factor, row):
        array = constant(factor)
        if array is None or array.size != 1:
            return None
        numbers = np.full([int(extent) for extent in row], array.reshape(()))
        single = factor
        factor = new_weight(model, str(single.name), numbers)
        record_fold(model, single, factor, f"a row of {made.name!r}")
    return [factor] if node.op_type == "Mul" else [scale, factor]


def fuse_group_normalization(model: ir.Model) -> int:
    """Replace InstanceNormalization and GroupNormalization by dso.Normalize; return how many.

    Each group of channels is a row. A Mul and an Add follow with the factors of the channels, if
    these are not all 1 and 0.
    """
    count = 0
    for node in list(model.graph):
        if not is_node(node, "InstanceNormalization", "GroupNormalization"):
            continue
        shape = sizes(node.inputs[0])
        if not is_float32(*node.inputs) or shape is None or len(shape) < 3:
            continue
        if any(size.names for size in shape[1:]) or not only_first_output(node):
            continue
        _spell_out(model, node, shape)
        count += 1
    return count


def _spell_out(model: ir.Model, node: ir.Node, shape: list[Size]) -> None:
    channels = shape[1].number
    groups = node.attributes.get_int("num_groups", channels)
    rows = [shape[0], Size(groups), Size(prod(size.number for size in shape[1:]) // groups)]
    value, made = node.inputs[0], []
    if rows != shape:
        made.append(reshape_node(model, value, rows))
        value = made[-1].outputs[0]
    epsilon = node.attributes.get_float("epsilon", 1e-5)
    attributes = {"kind": "layer", "axis": 2, "epsilon": epsilon}
    made.append(new_node("Normalize", [value], attributes, like=value, name=node.name, domain=DSO))
    if rows != shape:
        made.append(reshape_node(model, made[-1].outputs[0], shape))
    along = [Size(channels), *[Size(1)] * (len(shape) - 2)]
    value = made[-1].outputs[0]
    for kind, factor, neutral in (("Mul", node.inputs[1], 1.0), ("Add", node.inputs[2], 0.0)):
        array = constant(factor)
        if array is not None and np.all(array == neutral):
            continue
        if array is not None:
            other = new_weight(model, str(factor.name), array.reshape([s.number for s in along]))
            record_fold(model, factor, other, "with another shape")
        else:
            made.append(reshape_node(model, factor, along))
            other = made[-1].outputs[0]
        made.append(new_node(kind, [value, other], like=node.outputs[0]))
        value = made[-1].outputs[0]
    replace(node, made)
