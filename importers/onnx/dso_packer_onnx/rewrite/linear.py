"""Products with a constant matrix, and the chains of Reshape and Transpose around them.

Such a product treats each row by itself, so it can compute the rows in another order: a chain that
reorders the rows before it can as well do so after it. And each column is computed by itself, so a
product can be split where its columns are read apart.
"""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from .arrange import Cost, carry_out, chain_cost, ends, in_base_order, plan, reshape_node
from .chains import view_of
from .graph import (
    DSO,
    Array,
    constant,
    dims,
    is_constant,
    is_node,
    new_node,
    new_weight,
    optional,
    replace,
)
from .record import record_fold
from .views import ONE, Factor, Size, View, extent_of, joined, product, sizes

NARROWEST = 4  # columns of a part of a product


def is_linear(node: ir.Node | None) -> bool:
    """Return True if a node multiplies rows by a constant matrix, and adds a constant at most."""
    if node is None or not is_node(node, "MatMul", domain=DSO) or optional(node, 3) is not None:
        return False
    if node.attributes.get_int("trans_a", 0) or node.attributes.get_string("activation", ""):
        return False
    weight, bias = node.inputs[1], optional(node, 2)
    matrix = is_constant(weight) and len(dims(weight) or ()) == 2
    return matrix and (bias is None or is_constant(bias))


class Sunk(NamedTuple):
    """A product that reads the rows of `source` in their order."""

    source: ir.Value  # the base of the chain before the product
    shape: list[Size]  # the shape to read it in
    # The old output. Its base is not in the graph; it only has a shape.
    view: View


def sink(node: ir.Node) -> Sunk | None:
    """Describe a product in place of `node` that reads the base of the chain before it.

    None if the chain reorders more than rows, or leaves some out.
    """
    if not is_linear(node):
        return None
    rows, shape = node.inputs[0], sizes(node.outputs[0])
    view = view_of(rows)
    if view is None or shape is None or view.base is rows or not view.axes:
        return None
    inner, columns = (sizes(rows) or [ONE])[-1], shape[-1]
    order, base = in_base_order(view), sizes(view.base)
    last = [Factor(inner, ONE)] if inner != ONE else []
    if order is None or base is None or joined(view.axes[-1]) != last:
        return None
    if not base or base[-1] != inner:
        outer = [factor.extent for factor in order if factor.stride != ONE]
        base = [*outer, inner]
        if product(base) != product([factor.extent for factor in order]):
            return None
    output = _placeholder([*base[:-1], columns])
    return Sunk(view.base, base, _rows_of(view, output, inner, columns))


def _placeholder(shape: list[Size]) -> ir.Value:
    extents = ir.Shape([extent_of(size) for size in shape])
    return ir.Value(name=None, shape=extents, type=ir.TensorType(ir.DataType.FLOAT))


def _rows_of(view: View, base: ir.Value, inner: Size, columns: Size) -> View:
    """Return the same rows of another length: each stride is counted in rows."""
    axes = [
        tuple(
            Factor(factor.extent, steps.times(columns))
            for factor in joined(axis)
            if (steps := factor.stride.over(inner)) is not None
        )
        for axis in view.axes[:-1]
    ]
    return View(base, (*axes, (Factor(columns, ONE),) if columns != ONE else ()))


def put(model: ir.Model, node: ir.Node, sunk: Sunk) -> ir.Node | None:
    """Replace a product as `sink` describes it, and show its output in the old order.

    Returns the new product, or None and changes nothing if Reshape and Transpose cannot do this.
    """
    shape = sizes(node.outputs[0])
    if shape is None or plan(sunk.view, shape) is None or _symbols(sunk.shape) > 1:
        return None
    source, before = sunk.source, []
    if sizes(source) != sunk.shape:
        before = [reshape_node(model, source, sunk.shape)]
        source = before[0].outputs[0]
    made = new_node(
        "MatMul",
        [source, *node.inputs[1:]],
        node.attributes,
        shape=dims(sunk.view.base),
        name=node.name,
        domain=DSO,
    )
    steps = plan(sunk.view._replace(base=made.outputs[0]), shape)
    assert steps is not None
    replace(node, [*before, made, *carry_out(model, steps)])
    return made


def _symbols(shape: list[Size]) -> int:
    return sum(bool(size.names) for size in shape)


def sink_views(model: ir.Model) -> int:
    """Move chains that reorder rows from before a product to after it; return how many products.

    This is done where fewer copies or nodes are left: around attention, the chains before and after
    a projection cancel.
    """
    count = 0
    for node in list(model.graph):
        sunk = sink(node) if node.graph is not None else None
        if sunk is None:
            continue
        before, after = _costs(node, sunk)
        if after is not None and after < before and put(model, node, sunk) is not None:
            count += 1
    return count


def _costs(node: ir.Node, sunk: Sunk) -> tuple[Cost, Cost | None]:
    """Return the cost of the chains before and after a product now, and of those after a move."""
    output, rows = node.outputs[0], node.inputs[0]
    copies = nodes = 0
    if all(is_linear(use.node) for use in rows.uses()):
        copies, nodes = chain_cost(rows, sunk.source)
    new_copies, new_nodes = 0, int(sizes(sunk.source) != sunk.shape)
    for end in ends(output):
        shape, moved = sizes(end), view_of(end, sunk.view, output)
        steps = plan(moved, shape) if moved is not None and shape is not None else None
        if steps is None or steps.base is not sunk.view.base:
            return (copies, nodes), None
        old = chain_cost(end, output)
        copies, nodes = copies + old[0], nodes + old[1]
        new_copies, new_nodes = new_copies + steps.cost[0], new_nodes + steps.cost[1]
    return (copies, nodes), (new_copies, new_nodes)


class _Columns(NamedTuple):
    """Adjacent columns of a product, and a value that shows them and no others."""

    first: int
    width: int
    end: ir.Value
    view: View  # of the part; its base is not in the graph


def split_products(model: ir.Model) -> int:
    """Split products whose columns are read apart, as q, k and v of a projection; return how many.

    Each part has its columns of the weights, so that no copy of a part of each row is needed.
    """
    count = 0
    for node in list(model.graph):
        if node.graph is None or not is_linear(node) or len(node.inputs[1].uses()) != 1:
            continue
        parts = _parts(node)
        if parts is None:
            continue
        for first, width in sorted({(part.first, part.width) for part in parts}):
            made = _part(model, node, first, width)
            model.graph.insert_before(node, made)
            for part in parts:
                if part.first == first:
                    _show(model, part, made.outputs[0])
        count += 1
    return count


def _parts(node: ir.Node) -> list[_Columns] | None:
    """Return how the columns of a product are read, or None if not in two parts or more."""
    output = node.outputs[0]
    shape = sizes(output)
    if shape is None or shape[-1].names:
        return None
    parts = []
    for end in ends(output):
        part = _columns(output, end, shape)
        if part is None:
            return None
        parts.append(part)
    ranges = sorted({(part.first, part.width) for part in parts})
    apart = all(a + b <= c for (a, b), (c, _) in zip(ranges, ranges[1:], strict=False))
    return parts if apart and len(ranges) > 1 else None


def _columns(output: ir.Value, end: ir.Value, shape: list[Size]) -> _Columns | None:
    row = shape[-1].number
    view, target = view_of(end), sizes(end)
    if view is None or target is None or view.base is not output or view.offset >= row:
        return None
    inner = [
        factor
        for axis in view.axes
        for factor in joined(axis)
        if not factor.stride.names and factor.stride.number < row
    ]
    width = product([factor.extent for factor in inner])
    if width.names or not NARROWEST <= width.number < row or view.offset + width.number > row:
        return None
    base = _placeholder([*shape[:-1], width])
    axes = []
    for axis in view.axes:
        factors = []
        for factor in joined(axis):
            steps = ONE if factor in inner else factor.stride.over(shape[-1])
            if steps is None:
                return None
            stride = factor.stride if factor in inner else steps.times(width)
            factors.append(Factor(factor.extent, stride))
        axes.append(tuple(factors))
    part = View(base, tuple(axes))
    return None if plan(part, target) is None else _Columns(view.offset, width.number, end, part)


def _part(model: ir.Model, node: ir.Node, first: int, width: int) -> ir.Node:
    """Make a product with some of the columns."""
    weight, bias = node.inputs[1], optional(node, 2)
    array, columns = constant(weight), slice(first, first + width)
    assert array is not None
    trans = node.attributes.get_int("trans_b", 0)
    inputs = [
        node.inputs[0],
        _piece(model, weight, array[columns] if trans else array[:, columns], columns),
    ]
    if bias is not None and (row := constant(bias)) is not None:
        inputs.append(_piece(model, bias, row[columns], columns))
    shape = [*(dims(node.outputs[0]) or ())[:-1], width]
    return new_node(
        "MatMul", inputs, node.attributes, shape=shape, name=f"{node.name}[{first}]", domain=DSO
    )


def _piece(model: ir.Model, weight: ir.Value, array: Array, columns: slice) -> ir.Value:
    piece = new_weight(model, f"{weight.name}[{columns.start}:{columns.stop}]", array)
    record_fold(model, weight, piece, "split by columns, this is the first part")
    return piece


def _show(model: ir.Model, part: _Columns, output: ir.Value) -> None:
    """Replace the end of a chain by a view of a part."""
    shape, end = sizes(part.end), part.end
    steps = plan(part.view._replace(base=output), shape or [])
    assert steps is not None
    nodes = carry_out(model, steps)
    replace(end.producer(), nodes, value=None if nodes else output, old=end)
