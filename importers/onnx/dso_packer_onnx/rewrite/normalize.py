"""Rows that are normalized: LayerNormalization, RMSNormalization, Softmax become dso.Normalize."""

from __future__ import annotations

from math import prod

import onnx_ir as ir

from .graph import (
    DSO,
    Dim,
    dims,
    is_float32,
    is_node,
    new_node,
    only_first_output,
    optional,
    replace,
)

_SOFTMAXES = {"LogSoftmax": "log_softmax", "Softmax": "softmax"}
_KIND = {"LayerNormalization": "layer", "RMSNormalization": "rms", **_SOFTMAXES}


def fuse_normalize(model: ir.Model) -> int:
    """Replace float32 normalizations of the last axes by dso.Normalize; return how many.

    The axes from ``axis`` on are one row, whose extents are static but for a softmax; scale and
    bias have as many elements as a row.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, *_KIND) or not is_float32(node.inputs[0], node.outputs[0]):
            continue
        shape = dims(node.inputs[0])
        if shape is None or not shape or not only_first_output(node):
            continue
        axis = node.attributes.get_int("axis", -1) % len(shape)
        if node.op_type in _SOFTMAXES:
            if axis != len(shape) - 1:
                continue
        elif not all(isinstance(extent, int) for extent in shape[axis:]):
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
    """Make the axis of each float32 Softmax and LogSoftmax the last one, by Transposes around it.

    Returns how many nodes were replaced.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, *_SOFTMAXES) or not is_float32(node.inputs[0]):
            continue
        shape = dims(node.inputs[0])
        if not shape:
            continue
        axis = node.attributes.get_int("axis", -1) % len(shape)
        if axis != len(shape) - 1:
            replace(node, _turned(node, shape, axis))
            count += 1
    return count


def _turned(node: ir.Node, shape: tuple[Dim, ...], axis: int) -> list[ir.Node]:
    perm = [*range(axis), *range(axis + 1, len(shape)), axis]
    back = [perm.index(i) for i in range(len(shape))]
    turned = [shape[i] for i in perm]
    before = new_node("Transpose", [node.inputs[0]], {"perm": perm}, shape=turned)
    made = new_node(node.op_type, before.outputs, {"axis": -1}, shape=turned, name=node.name)
    after = new_node("Transpose", made.outputs, {"perm": back}, like=node.outputs[0])
    return [before, made, after]


def is_row(value: ir.Value, row: tuple[Dim, ...]) -> bool:
    """Return True if a factor has an element for each of a row, in the same order."""
    shape = dims(value)
    if shape is None or not is_float32(value) or not all(isinstance(d, int) for d in shape):
        return False
    return prod(shape) == prod(row) and tuple(shape[-len(row) :]) == row
