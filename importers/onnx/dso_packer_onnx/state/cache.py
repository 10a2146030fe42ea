"""Caches: states whose output is the input with further rows, which are appended in place.

The axis that grows becomes the first one in memory, so that the rows of earlier calls stay where
they are: Concat of a cache is dso.Append between transposes, which later rewrites remove.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import onnx_ir as ir

from ..extent import Extent, identifier, symbols_of
from ..operator import shape_of
from ..read.words import refusal
from ..rewrite.clean import remove_no_ops
from ..rewrite.graph import DSO, dims, is_node, new_node, replace


class State(NamedTuple):
    """A state of a model, by the names of its input and its output; its number is its index."""

    input: str
    output: str
    is_appended: bool  # else each call replaces it


def append_in_place(models: Sequence[ir.Model], pairs: Mapping[str, str]) -> tuple[State, ...]:
    """Turn the caches among pairs of inputs and outputs into dso.Append; return the states.

    A model that only makes a cache, as the first rows, stores it in the same order. Raises
    ExportError if the models change a state in several ways.
    """
    states = []
    for model in models if pairs else ():
        remove_no_ops(model)  # torch.jit.trace joins an empty cache and the past
    for past, present in pairs.items():
        inputs = [_named(model.graph.inputs, past) for model in models]
        outputs = [_made(model.graph, present) for model in models]
        ends = list(zip(models, inputs, outputs, strict=True))
        orders = [_append(one.graph, old, new) for one, old, new in ends if old and new]
        order = orders[0] if orders else None
        is_read = any(old and not new for _, old, new in ends)
        if any(one != order for one in orders) or (order and is_read):
            text = f"state: {past!r}, expected one that each function with it appends to, or none"
            raise refusal(models[0].meta.get("source", "model"), f"{text}; see tokens.md")
        for model, old, new in ends:
            if order and new and not old:
                _begin(model.graph, new, order)
        states.append(State(past, present, order is not None))
    return tuple(states)


def _named(values: Sequence[ir.Value], name: str) -> ir.Value | None:
    return next((value for value in values if value.name == name), None)


def _made(graph: ir.Graph, name: str) -> ir.Value | None:
    """Return an output as the node makes it that does more than to name it."""
    output = _named(graph.outputs, name)
    while output is not None and is_node(node := output.producer(), "Identity"):
        value = node.inputs[0]
        if value is None or value.producer() is None or value.is_graph_output():
            break
        output.name, value.name = None, name
        output.replace_all_uses_with(value, replace_graph_outputs=True)
        graph.remove(node, safe=True)
        output = value
    return output


def _begin(graph: ir.Graph, made: ir.Value, order: Sequence[int]) -> None:
    """Return the first rows of a cache as its memory has them."""
    turned = _turned(made, order)
    graph.append(turned)
    graph.outputs[graph.outputs.index(made)] = turned.outputs[0]
    turned.outputs[0].name, made.name = made.name, None


def _append(graph: ir.Graph, past: ir.Value, present: ir.Value) -> list[int] | None:
    """Append in place, and return the order of axes in memory; None if a call replaces it."""
    node = present.producer()
    extents = dims(past) or ()
    if node is None or node.domain or node.op_type != "Concat" or len(node.inputs) != 2:
        return None
    axis = node.attributes.get_int("axis", 0) % max(len(extents), 1)
    first, new = node.inputs
    if first is not past or new is None or isinstance(extents[axis], int):
        return None
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
    return order


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
    inputs = {value.name for value in graph.inputs}
    outputs = {str(value.name): value for value in graph.outputs}
    appended = (one.output for one in states if one.is_appended and one.input in inputs)
    totals = {shape_of(outputs[name])[0] for name in appended}
    taken = [*symbols_of(extent for value in graph.inputs for extent in shape_of(value))]
    names: dict[Extent, str] = {}
    for total in sorted(one for one in totals if isinstance(one, str)):
        names[total] = identifier("length", taken)
        taken.append(names[total])
    for value in (value for node in graph for value in node.outputs):
        if value.shape is not None and any(extent in names for extent in shape_of(value)):
            value.shape = ir.Shape([names.get(extent, extent) for extent in shape_of(value)])
    return {name: extent for extent, name in names.items()}
