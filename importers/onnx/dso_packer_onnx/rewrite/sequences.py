"""Convolutions along one axis: sequences become images of one row."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from .graph import (
    Dim,
    changed_weight,
    constant,
    dims,
    ints,
    is_constant,
    is_float32,
    new_node,
    new_weight,
    only_first_output,
    optional,
    replace,
    reshape,
)
from .regions import EACH, rank_of, region

# The operators that a region grows from, and what their lists of numbers have for a row.
_WINDOWS = {"AveragePool", "Conv", "ConvTranspose", "MaxPool", "ConvInteger", "QLinearConv"}
_WINDOWS |= {"GlobalAveragePool", "GlobalMaxPool"}
_OF_ONE_ROW = {
    "kernel_shape": 1,
    "strides": 1,
    "dilations": 1,
    "output_padding": 0,
    "output_shape": 1,
}
_MOVES = {"Pad": 3, "Slice": 3}  # and operators that take axes, by this input
_AXIS = 2  # of the row


def raise_sequences(model: ir.Model) -> int:
    """Give the operators of networks along one axis a second one of extent 1; return how many.

    A Reshape is left before and after them.
    """
    found = region(model, _is_window, _is_each)
    rows: dict[ir.Value, ir.Value] = {}  # values with the row
    for node in found:
        _raise(model, node, rows)
    return len(found)


def _is_window(node: ir.Node) -> bool:
    if node.domain or node.op_type not in _WINDOWS or rank_of(node.inputs[0]) != 3:
        return False
    weight = {"QLinearConv": 3, "Conv": 1, "ConvTranspose": 1, "ConvInteger": 1}.get(node.op_type)
    return (
        rank_of(node.outputs[0]) == 3
        and only_first_output(node)
        and (weight is None or _is_known(node.inputs[weight]) or _is_computed(node))
    )


def _is_computed(node: ir.Node) -> bool:
    """Return True for a Conv of float32 whose weight has known extents."""
    weight = node.inputs[1]
    is_closed = all(isinstance(extent, int) for extent in dims(weight) or ("",))
    return node.op_type == "Conv" and is_float32(weight) and is_closed


def _is_known(value: ir.Value | None) -> bool:
    """Return True for a constant, and for one that is stored as integers."""
    producer = None if value is None else value.producer()
    if producer is not None and producer.op_type == "DequantizeLinear":
        value = producer.inputs[0]
    return is_constant(value)


def _is_each(node: ir.Node) -> bool:
    if node.domain or len(node.outputs) != 1:
        return False
    if node.op_type in _MOVES:
        return rank_of(node.inputs[0]) == 3 and _moved_axes(node) is not None
    if node.op_type not in EACH:
        return False
    ranks = [rank_of(value) for value in node.inputs if value is not None]
    is_of_first = "axis" not in node.attributes or node.attributes.get_int("axis", 1) in (0, 1)
    return (
        rank_of(node.outputs[0]) == 3
        and min(ranks) >= 0
        and max(ranks) == 3
        and is_of_first
        and not node.attributes.get_int("block_size", 0)
        and all(
            rank in (0, 1, 3) or is_constant(value)
            for rank, value in zip(ranks, node.inputs, strict=False)
        )
    )


def _moved_axes(node: ir.Node) -> list[int] | None:
    """Return the axes of a Pad or Slice of constant numbers, with the row; else None."""
    if not all(value is None or is_constant(value) for value in node.inputs[1:]):
        return None
    count = len(ints(node.inputs[1]) or ()) // (2 if node.op_type == "Pad" else 1)
    axes = ints(optional(node, _MOVES[node.op_type]))
    return [axis % 3 + (axis % 3 == _AXIS) for axis in (range(count) if axes is None else axes)]


def _raise(model: ir.Model, node: ir.Node, rows: dict[ir.Value, ir.Value]) -> None:
    new: list[ir.Node] = []
    if node.op_type in _MOVES:
        place = _MOVES[node.op_type]
        axes = new_weight(model, f"{node.name}.axes", np.array(_moved_axes(node), np.int64))
        inputs = [*node.inputs, None, None][: max(place + 1, len(node.inputs))]
        inputs[0], inputs[place] = _raised(model, node.inputs[0], new, rows), axes
    else:
        inputs = [_raised(model, value, new, rows) for value in node.inputs]
    out = node.outputs[0]
    shape, dtype = dims(out) or (), out.dtype or ir.DataType.FLOAT
    attributes = _attributes(node)
    made = new_node(
        node.op_type, inputs, attributes, shape=_with_row(shape), dtype=dtype, name=node.name
    )
    back = reshape(model, made.outputs[0], shape)
    rows[back.outputs[0]] = made.outputs[0]
    replace(node, [*new, made, back])


def _raised(
    model: ir.Model,
    value: ir.Value | None,
    new: list[ir.Node],
    rows: dict[ir.Value, ir.Value],
) -> ir.Value | None:
    """Return an input with the row; a node that makes it is added to `new`."""
    shape = dims(value)
    if value is None or shape is None or len(shape) < 2:
        return value
    if value not in rows:
        array = constant(value)
        if array is not None:
            extents = [int(extent) for extent in _with_row(shape)]
            rows[value] = changed_weight(model, value, array.reshape(extents), "of one row")
        else:
            new.append(reshape(model, value, _with_row(shape)))
            rows[value] = new[-1].outputs[0]
    return rows[value]


def _with_row(shape: tuple[Dim, ...]) -> list[Dim]:
    return [*shape[:-1], 1, shape[-1]]


def _attributes(node: ir.Node) -> dict[str, Any]:
    made: dict[str, Any] = dict(node.attributes)
    for name, number in _OF_ONE_ROW.items():
        if name in made:
            made[name] = [number, *made[name].as_ints()]
    if "pads" in made:
        before, after = made["pads"].as_ints()
        made["pads"] = [0, before, 0, after]
    return made
