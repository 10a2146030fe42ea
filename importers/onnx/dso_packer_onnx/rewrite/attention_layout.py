"""dso.Attention that reads and writes rows as projections do, so that no transpose is left."""

from __future__ import annotations

import onnx_ir as ir

from .arrange import carry_out, chain_cost, ends, in_base_order, plan, reshape_node
from .attention_operator import attention_node
from .chains import view_of
from .graph import DSO, is_node, optional, replace
from .linear import put, sink
from .views import ONE, Factor, Size, View, extent_of, joined, sizes, whole


def lay_out_attention(model: ir.Model) -> int:
    """Let dso.Attention read q, k and v before their transposes to heads; return how many changed.

    The layout becomes "bsh" if each of the three is such a transpose of rows (batch, rows, heads *
    size). A projection before it computes its rows in this order, if it is the projection's input
    that was in another one. The output is written likewise if this leaves fewer copies.
    """
    count = 0
    for node in list(model.graph):
        if not is_node(node, "Attention", domain=DSO):
            continue
        if node.attributes.get_string("layout") == "bhs":
            count += _lay_out(model, node)
    return count


def _lay_out(model: ir.Model, node: ir.Node) -> bool:
    arranged = node.inputs[: 1 if "kv_layout" in node.attributes else 3]  # the rest is a cache
    rows = [_rows(model, value) for value in arranged]
    found = [row for row in rows if row is not None]
    inside = "bsh" if len(found) == len(arranged) else "bhs"
    output = node.outputs[0]
    outside = "bsh" if _is_better(output) else "bhs"
    if inside == outside == "bhs":
        return False
    made: list[ir.Node] = []
    inputs: list[ir.Value] = list(node.inputs[:3])
    if inside == "bsh":
        for index, (base, shape) in enumerate(found):
            if sizes(base) != shape:
                made.append(reshape_node(model, base, shape))
                base = made[-1].outputs[0]
            inputs[index] = base
    attributes = {key: item.value for key, item in node.attributes.items()}
    attributes |= {"layout": inside, "out_layout": outside}
    batch, heads, count, size = sizes(output) or [ONE] * 4
    shape = [batch, count, heads.times(size)] if outside == "bsh" else [batch, heads, count, size]
    extents = [extent_of(item) for item in shape]
    attention = attention_node([*inputs, optional(node, 3)], attributes, extents, node.name)
    made.append(attention)
    if outside == "bsh":
        steps = plan(_heads_view(attention.outputs[0], output), sizes(output) or [])
        assert steps is not None
        made += carry_out(model, steps)
    replace(node, made)
    return True


def _rows(model: ir.Model, value: ir.Value) -> tuple[ir.Value, list[Size]] | None:
    """Return the rows that a value shows as heads, and the shape to read them in; else None."""
    view = view_of(value)
    shape = None if view is None else _rows_shape(view, value)
    if view is None or shape is not None:
        return None if view is None or shape is None else (view.base, shape)
    made = view.base.producer()
    sunk = None if made is None else sink(made)
    if made is None or sunk is None:
        return None
    moved = view_of(value, sunk.view, view.base)
    if moved is None or _rows_shape(moved, value) is None or put(model, made, sunk) is None:
        return None
    view = view_of(value)
    shape = None if view is None else _rows_shape(view, value)
    return None if view is None or shape is None else (view.base, shape)


def _rows_shape(view: View, value: ir.Value) -> list[Size] | None:
    """Return (batch, rows, heads * size) if the base of a view has its elements in this order."""
    extents = sizes(value)
    if extents is None or in_base_order(view) is None:
        return None
    batch, heads, rows, size = extents
    width = heads.times(size)
    strides = (rows.times(width), size, width, ONE)
    for axis, extent, stride in zip(view.axes, extents, strides, strict=True):
        if joined(axis) != ([Factor(extent, stride)] if extent != ONE else []):
            return None
    return [batch, rows, width]


def _heads_view(rows: ir.Value, heads: ir.Value) -> View:
    """Return rows of shape (batch, rows, heads * size) in the shape (batch, heads, rows, size)."""
    batch, count, number, size = sizes(heads) or [ONE] * 4
    view = whole(rows, [batch, number, count, size])
    assert view is not None
    first, second, third, fourth = view.axes
    return view._replace(axes=(first, third, second, fourth))


def _is_better(output: ir.Value) -> bool:
    """Return True if not more copies are left where the output is written as rows.

    Of equal ones this is better: a projection that follows can take the rest of them away.
    """
    shape = sizes(output)
    if shape is None:
        return False
    batch, heads, rows, size = shape
    extents = ir.Shape([extent_of(item) for item in (batch, rows, heads.times(size))])
    written = ir.Value(name=None, shape=extents, type=output.type)
    start = _heads_view(written, output)
    before = after = 0
    for end in ends(output):
        view, target = view_of(end, start, output), sizes(end)
        steps = plan(view, target) if view is not None and target is not None else None
        if steps is None or steps.base is not written:
            return False
        before, after = before + chain_cost(end, output)[0], after + steps.cost[0]
    return after <= before and before > 0
