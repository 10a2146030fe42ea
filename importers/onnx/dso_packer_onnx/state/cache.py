"""Caches: states whose output is the input with further rows, which are appended in place.

The axis that grows becomes the first one in memory, so that the rows of earlier calls stay where
they are: Concat of a cache is dso.Append between transposes, which later rewrites remove.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import onnx_ir as ir

from ..extent import Extent, identifier, symbols_of
from ..operator import shape_of
from ..rewrite.graph import DSO, dims, new_node, replace


class State(NamedTuple):
    """A state of a model, by the names of its input and its output; its number is its index."""

    input: str
    output: str
    is_appended: bool  # else each call replaces it


def append_in_place(
    model: ir.Model, pairs: Sequence[tuple[ir.Value, ir.Value]]
) -> tuple[State, ...]:
    """Turn the caches among pairs of inputs and outputs into dso.Append; return the states."""
    return tuple(
        State(str(past.name), str(present.name), _append(model.graph, past, present))
        for past, present in pairs
    )


def _append(graph: ir.Graph, past: ir.Value, present: ir.Value) -> bool:
    node = present.producer()
    extents = dims(past) or ()
    if node is None or node.domain or node.op_type != "Concat" or len(node.inputs) != 2:
        return False
    axis = node.attributes.get_int("axis", 0) % max(len(extents), 1)
    first, new = node.inputs
    if first is not past or new is None or isinstance(extents[axis], int):
        return False
    order = [axis, *(one for one in range(len(extents)) if one != axis)]
    back = [order.index(one) for one in range(len(extents))]
    rows = _turned(new, order)
    memory = ir.Value(
        name=past.name, type=past.type, shape=ir.Shape([extents[one] for one in order])
    )
    shape = [(dims(present) or ())[one] for one in order]
    append = new_node(
        "Append", [memory, rows.outputs[0]], shape=shape, dtype=_dtype(past), domain=DSO
    )
    after = _turned(append.outputs[0], back)
    before = _turned(memory, back)
    graph.insert_before(node, [rows, append, after])
    graph.insert_before(graph[0], [before])
    graph.inputs[graph.inputs.index(past)] = memory
    graph.outputs[graph.outputs.index(present)] = append.outputs[0]
    append.outputs[0].name, present.name = present.name, None
    present.replace_all_uses_with(after.outputs[0])
    graph.remove(node, safe=True)
    _ask_memory(graph, past, memory, back)
    past.replace_all_uses_with(before.outputs[0])
    if not before.outputs[0].uses():
        graph.remove(before, safe=True)
    if not after.outputs[0].uses():
        graph.remove(after, safe=True)
    past.name = None
    return True


def _ask_memory(graph: ir.Graph, past: ir.Value, memory: ir.Value, back: Sequence[int]) -> None:
    """Let each Shape of a cache read its memory, so that nothing turns the cache for it."""
    for node, _ in past.uses():
        if node.op_type != "Shape" or node.domain:
            continue
        rank = len(back)
        start, end, _ = slice(
            node.attributes.get_int("start", 0), node.attributes.get_int("end", rank)
        ).indices(rank)
        kept = [back[axis] for axis in range(start, max(start, end))]
        extents = new_node("Shape", [memory], shape=[rank], dtype=ir.DataType.INT64)
        order = ir.Value(
            name=f"{node.outputs[0].name}_order",
            shape=ir.Shape([len(kept)]),
            type=ir.TensorType(ir.DataType.INT64),
            const_value=ir.tensor(kept, dtype=ir.DataType.INT64),
        )
        graph.register_initializer(order)
        chosen = new_node("Gather", [extents.outputs[0], order], like=node.outputs[0])
        replace(node, [extents, chosen])


def _dtype(value: ir.Value) -> ir.DataType:
    assert value.dtype is not None
    return value.dtype


def _turned(value: ir.Value, order: Sequence[int]) -> ir.Node:
    shape = [(dims(value) or ())[axis] for axis in order]
    return new_node("Transpose", [value], {"perm": [*order]}, shape=shape, dtype=_dtype(value))


def name_totals(graph: ir.Graph, states: Sequence[State]) -> dict[str, Extent]:
    """Name the lengths of caches after a call, sums that views of them cannot divide.

    Returns the expression of each name, in the symbols of the inputs.
    """
    outputs = {str(value.name): value for value in graph.outputs}
    totals = {shape_of(outputs[one.output])[0] for one in states if one.is_appended}
    taken = [*symbols_of(extent for value in graph.inputs for extent in shape_of(value))]
    names: dict[Extent, str] = {}
    for total in sorted(one for one in totals if isinstance(one, str)):
        names[total] = identifier("length", taken)
        taken.append(names[total])
    for value in (value for node in graph for value in node.outputs):
        if value.shape is not None and any(extent in names for extent in shape_of(value)):
            value.shape = ir.Shape([names.get(extent, extent) for extent in shape_of(value)])
    return {name: extent for extent, name in names.items()}
