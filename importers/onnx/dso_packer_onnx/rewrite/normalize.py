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

_KIND = {"LayerNormalization": "layer", "RMSNormalization": "rms", "Softmax": "softmax"}


def fuse_normalize(model: ir.Model) -> int:
    """Replace float32 normalizations of the last axes by dso.Normalize; return how many.

    The axes from ``axis`` on are one row, whose extents are static; scale and bias have as many
    elements as a row. A Softmax over another axis than the last remains.
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


def is_row(value: ir.Value, row: tuple[Dim, ...]) -> bool:
    """Return True if a factor has an element for each of a row, in the same order."""
    shape = dims(value)
    if shape is None or not is_float32(value) or not all(isinstance(d, int) for d in shape):
        return False
    return prod(shape) == prod(row) and tuple(shape[-len(row) :]) == row
