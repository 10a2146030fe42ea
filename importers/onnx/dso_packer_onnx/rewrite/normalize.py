"""Rows that are normalized: LayerNormalization, RMSNormalization, Softmax become dso.Normalize."""

from __future__ import annotations

from math import prod

import numpy as np
import onnx_ir as ir

from .graph import (
    DSO,
    Dim,
    dims,
    is_float32,
    is_node,
    new_node,
    new_weight,
    only_first_output,
    optional,
    replace,
)

_KIND = {"LayerNormalization": "layer", "RMSNormalization": "rms", "Softmax": "softmax"}


def fuse_normalize(model: ir.Model) -> int:
    """Replace float32 normalizations of the last axes by dso.Normalize; return how many.

    The axes from ``axis`` on are one row, whose extents are static; scale and bias have as many
    elements as a row.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, *_KIND) or not is_float32(node.inputs[0], node.outputs[0]):
            continue
        shape = dims(node.inputs[0])
        if shape is None or not shape or not only_first_output(node):
            continue
        axis = node.attributes.get_int("axis", -1) % len(shape)
        if not all(isinstance(extent, int) for extent in shape[axis:]):
            continue
        if node.op_type == "Softmax" and axis != len(shape) - 1:
            continue
        factors = [optional(node, 1), optional(node, 2)]
        if not all(is_row(value, shape[axis:]) for value in factors if value is not None):
            continue
        attributes = {
            "kind": _KIND[node.op_type],
            "axis": axis,
            "epsilon": node.attributes.get_float("epsilon", 1e-5),
        }
        while factors and factors[-1] is None:
            factors.pop()
        new = new_node(
            "Normalize",
            [node.inputs[0], *factors],
            attributes,
            like=node.outputs[0],
            name=node.name,
            domain=DSO,
        )
        replace(node, [new])
        count += 1
    return count


def turn_softmax(model: ir.Model) -> int:
    """Make the axis of each float32 Softmax the last one, with a Transpose before and after it.

    A LogSoftmax of any axis becomes its definition: x - m - log(sum of exp(x - m)), where m is the
    greatest element. Returns how many nodes were replaced.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "LogSoftmax", "Softmax") or not is_float32(node.inputs[0]):
            continue
        shape = dims(node.inputs[0])
        if not shape:
            continue
        axis = node.attributes.get_int("axis", -1) % len(shape)
        if node.op_type == "LogSoftmax":
            if shape[axis] == 0 or not isinstance(shape[axis], int):
                continue  # an empty row has no greatest element
            replace(node, _spelled(model, node, shape, axis))
        elif all(extent == 1 for extent in shape[axis + 1 :]):
            continue
        else:
            replace(node, _turned(node, shape, axis))
        count += 1
    return count


def _turned(node: ir.Node, shape: tuple[Dim, ...], axis: int) -> list[ir.Node]:
    perm = [*range(axis), *range(axis + 1, len(shape)), axis]
    back = [perm.index(i) for i in range(len(shape))]
    turned = [shape[i] for i in perm]
    before = new_node("Transpose", [node.inputs[0]], {"perm": perm}, shape=turned)
    made = new_node("Softmax", before.outputs, {"axis": -1}, shape=turned, name=node.name)
    after = new_node("Transpose", made.outputs, {"perm": back}, like=node.outputs[0])
    return [before, made, after]


def _spelled(model: ir.Model, node: ir.Node, shape: tuple[Dim, ...], axis: int) -> list[ir.Node]:
    axes = new_weight(model, f"{node.name}.axes", np.array([axis]))
    one = [*shape[:axis], 1, *shape[axis + 1 :]]
    most = new_node("ReduceMax", [node.inputs[0], axes], shape=one)
    less = new_node("Sub", [node.inputs[0], most.outputs[0]], shape=shape)
    power = new_node("Exp", less.outputs, shape=shape)
    total = new_node("ReduceSum", [power.outputs[0], axes], shape=one)
    log = new_node("Log", total.outputs, shape=one)
    result = new_node("Sub", [less.outputs[0], log.outputs[0]], like=node.outputs[0])
    return [most, less, power, total, log, result]


def is_row(value: ir.Value, row: tuple[Dim, ...]) -> bool:
    """Return True if a factor has an element for each of a row, in the same order."""
    shape = dims(value)
    if shape is None or not is_float32(value) or not all(isinstance(d, int) for d in shape):
        return False
    return prod(shape) == prod(row) and tuple(shape[-len(row) :]) == row
