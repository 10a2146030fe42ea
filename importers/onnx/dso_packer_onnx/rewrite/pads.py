"""Pads that follow from open extents: Pad becomes dso.Pad, whose pads are expressions."""

from __future__ import annotations

import onnx_ir as ir

from ..read.numbers import numbers_of
from .graph import DSO, constant, dims, is_node, new_node, optional, replace


def fuse_computed_pads(model: ir.Model) -> int:
    """Replace each Pad of zeros, or of a value, whose pads are expressions; return how many.

    The attribute pads has a number for each axis before it, then for each axis after it.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "Pad") or constant(node.inputs[1]) is not None:
            continue
        is_constant = node.attributes.get_string("mode", "constant") == "constant"
        numbers = numbers_of(node.inputs[1]) if is_constant else None
        shape = dims(node.inputs[0])
        if numbers is None or shape is None or optional(node, 3) is not None:
            continue
        if len(numbers) != 2 * len(shape):
            continue
        fill = optional(node, 2)
        inputs = [node.inputs[0], *([] if fill is None else [fill])]
        made = new_node("Pad", inputs, {"pads": numbers}, like=node.outputs[0], domain=DSO)
        replace(node, [made])
        count += 1
    return count
