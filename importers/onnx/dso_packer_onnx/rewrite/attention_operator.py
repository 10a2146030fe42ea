"""The operator Attention of ONNX, and how dso.Attention is made.

dso.Attention computes softmax(scale * q * transposed k + mask) * v for each head. In the layout
"bhs" q is (batch, heads, rows, size), in "bsh" (batch, rows, heads * size), as projections write
it. The mask has one number for each key, and broadcasts to (batch, heads, rows, keys).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from .graph import (
    DSO,
    Array,
    Dim,
    constant,
    dims,
    equal_dims,
    is_float32,
    is_node,
    new_node,
    new_weight,
    only_first_output,
    optional,
    replace,
)
from .record import record_fold

# As good as minus infinity in a mask: a product that is added to it is less than its rounding.
HIDDEN = -1e8


def fuse_attention_operator(model: ir.Model) -> int:
    """Replace float32 Attention of ONNX by dso.Attention; return how many.

    One with a cache of past keys, a softcap, a length for each batch, a mask for some of the keys
    only, or with a second output that is read, remains.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "Attention") or not is_float32(*node.inputs[:3]):
            continue
        if not only_first_output(node) or any(optional(node, index) for index in (4, 5, 6)):
            continue
        if node.attributes.get_float("softcap", 0.0) or not _fits(node):
            continue
        made: list[ir.Node] = []
        mask, causal = _mask(model, node, made)
        attributes = {**_heads(node), "is_causal": causal}
        output = node.outputs[0]
        made.append(
            attention_node([*node.inputs[:3], mask], attributes, dims(output) or (), node.name)
        )
        replace(node, made)
        count += 1
    return count


def _heads(node: ir.Node) -> dict[str, Any]:
    attributes = node.attributes
    if len(dims(node.inputs[0]) or ()) == 4:
        found = heads_of(node.inputs[:3])
        size = (dims(node.inputs[0]) or ())[3]
    else:
        heads = attributes.get_int("q_num_heads")
        shared = attributes.get_int("kv_num_heads")
        found = {"num_heads": heads, "kv_num_heads": shared, "layout": "bsh", "out_layout": "bsh"}
        size = int((dims(node.inputs[0]) or ())[2]) // heads
    scale = attributes.get_float("scale", None)
    return {**found, "scale": 1 / math.sqrt(size) if scale is None else scale}


def _fits(node: ir.Node) -> bool:
    """Return True if widths are static, and the mask has a number for each key."""
    shapes = [dims(value) for value in node.inputs[:3]]
    if any(shape is None or not isinstance(shape[-1], int) for shape in shapes):
        return False
    q, k, v = (shape or () for shape in shapes)
    four = len(q) == 4
    if four and not all(isinstance(shape[1], int) for shape in (q, k, v)):
        return False
    if (
        not len(q) == len(k) == len(v)
        or not equal_dims(k[:-1], v[:-1])
        or dims(node.outputs[0]) is None
    ):
        return False
    heads = (q[1], k[1]) if four else _counts(node)
    if not heads[0] or not heads[1] or heads[0] % heads[1]:
        return False
    mask = optional(node, 3)
    shape = dims(mask)
    if mask is None:
        return True
    return bool(shape) and len(shape or ()) <= 4 and equal_dims((shape or ())[-1:], k[-2:-1])


def _counts(node: ir.Node) -> tuple[int, int]:
    attributes = node.attributes
    return attributes.get_int("q_num_heads", 0), attributes.get_int("kv_num_heads", 0)


def _mask(model: ir.Model, node: ir.Node, made: list[ir.Node]) -> tuple[ir.Value | None, int]:
    causal, mask = node.attributes.get_int("is_causal", 0), optional(node, 3)
    if mask is not None and mask.dtype == ir.DataType.BOOL:
        mask = added_mask(model, mask, (0.0, -math.inf), made)
    array = constant(mask)
    rows = (dims(node.inputs[0]) or ())[-2 if len(dims(node.inputs[0]) or ()) == 4 else 1]
    keys = (dims(mask) or (0,))[-1]
    if mask is not None and array is not None and is_causal(array, (rows, keys)):
        remove_weight(model, mask)
        return None, 1
    return mask, causal


def heads_of(inputs: Sequence[ir.Value]) -> dict[str, Any]:
    """Return the counts of heads of q, k and v in the layout "bhs", and the layouts."""
    q, k = (dims(value) or () for value in inputs[:2])
    return {"num_heads": q[1], "kv_num_heads": k[1], "layout": "bhs", "out_layout": "bhs"}


def attention_node(
    inputs: Sequence[ir.Value | None],
    attributes: Mapping[str, Any],
    shape: Sequence[Dim],
    name: str | None,
) -> ir.Node:
    """Make dso.Attention; inputs are q, k, v and a mask or None."""
    values = list(inputs) if inputs[-1] is not None else list(inputs[:-1])
    ordered = {key: attributes[key] for key in _ATTRIBUTES if key in attributes}
    return new_node("Attention", values, ordered, shape=shape, name=name, domain=DSO)


# kv_layout: of k and v, if not as q; "sbhd" is (rows, batch, heads, size), as caches are. has_past:
# the last keys belong to the rows of q, so a causal mask begins there.
_ATTRIBUTES = (
    *("num_heads", "kv_num_heads", "scale", "is_causal", "layout", "out_layout"),
    *("kv_layout", "has_past"),
)


# ---- Masks ----


def added_mask(
    model: ir.Model, condition: ir.Value, choice: tuple[float, float], made: list[ir.Node]
) -> ir.Value:
    """Return a mask that is added: the first number where a mask of bool is True, else the second.

    If it is not a constant, a Where computes it, which is appended to `made`.
    """
    array = constant(condition)
    first, second = np.float32(choice[0]), np.float32(choice[1])
    if array is not None:
        mask = new_weight(model, str(condition.name), np.where(array, first, second))
        record_fold(model, condition, mask, "a mask that is added")
        return mask
    numbers = [new_weight(model, "mask", np.array(number)) for number in (first, second)]
    made.append(new_node("Where", [condition, *numbers], shape=dims(condition)))
    return made[-1].outputs[0]


def is_causal(mask: Array, plane: Sequence[Dim]) -> bool:
    """Return True if a mask hides from row i the keys after i, and no others."""
    if mask.shape[-2:] != tuple(plane) or mask.size != math.prod(mask.shape[-2:]):
        return False
    numbers = mask.reshape(mask.shape[-2:])
    later = np.triu(np.ones_like(numbers, bool), 1)
    return bool(np.all(numbers[~later] == 0) and np.all(numbers[later] <= HIDDEN))


def remove_weight(model: ir.Model, mask: ir.Value) -> None:
    """Record that a mask is computed, and remove it if nothing else reads it."""
    record_fold(model, mask, None, "a causal mask, which is computed")
    if not mask.uses():
        model.graph.initializers.pop(str(mask.name), None)
