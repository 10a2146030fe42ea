"""Chains of Reshape, Transpose and their like: their cost, and shorter ones.

`views` describes a chain. A Reshape costs nothing when the model runs, a Transpose copies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import onnx_ir as ir

from .chains import is_view, view_of
from .graph import dims, new_node, only_use, replace, reshape
from .views import ONE, Factor, Size, View, extent_of, product, sizes

Cost = tuple[int, int]  # copies, nodes
_FREE = ("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")


class Plan(NamedTuple):
    """How to make a view: Reshape to `split`, Transpose by `perm`, Reshape to `shape`."""

    base: ir.Value
    split: list[Size] | None
    perm: list[int] | None
    shape: list[Size] | None

    @property
    def cost(self) -> Cost:
        """The copies and the nodes."""
        steps = [step is not None for step in (self.split, self.perm, self.shape)]
        return int(steps[1]), sum(steps)


def in_base_order(view: View) -> list[Factor] | None:
    """Return the factors from outer to inner as the base has them; None if not each is there once.

    A view that leaves elements out, or shows some twice, has no such order.
    """
    factors = {factor.stride: factor for factor in view.factors}
    found, stride = [], ONE
    while stride in factors:
        found.append(factors.pop(stride))
        stride = stride.times(found[-1].extent)
    base = sizes(view.base)
    complete = base is not None and stride == product(base) and not factors and not view.offset
    return found[::-1] if complete else None


def plan(view: View, shape: Sequence[Size]) -> Plan | None:
    """Return the fewest nodes that make a view of this shape; None if these three cannot."""
    order, base = in_base_order(view), sizes(view.base)
    if order is None or base is None:
        return None
    target = list(shape)
    if order == view.factors:
        found = [Plan(view.base, None, None, target if target != base else None)]
    else:
        extents = [factor.extent for factor in order]
        perm = [order.index(factor) for factor in view.factors]
        found = [_permuted(view.base, extents, perm, target)]
        axes = _axes_in_order(view, base, target)
        if axes is not None:
            found.append(_permuted(view.base, base, axes, target))
    return min(found, key=lambda item: item.cost)


def _permuted(base: ir.Value, extents: list[Size], perm: list[int], target: list[Size]) -> Plan:
    after = [extents[axis] for axis in perm]
    split = extents if extents != sizes(base) else None
    return Plan(base, split, perm, target if target != after else None)


def _axes_in_order(view: View, base: list[Size], target: list[Size]) -> list[int] | None:
    """Return the axes of the base in the order of a view; None if it divides one of them.

    Axes of one element are put where the target has some.
    """
    by_stride: dict[Size, int] = {}
    stride = ONE
    for axis in reversed(range(len(base))):
        if base[axis] != ONE:
            by_stride[stride] = axis
        stride = stride.times(base[axis])
    axes: list[int] = []
    for factor in view.factors:
        inner: list[int] = []
        stride, end = factor.stride, factor.stride.times(factor.extent)
        while stride != end:
            if stride not in by_stride or len(inner) == len(base):
                return None
            inner.append(by_stride[stride])
            stride = stride.times(base[inner[-1]])
        axes += reversed(inner)
    single = [axis for axis, size in enumerate(base) if size == ONE]
    for place, size in enumerate(target):
        if size == ONE and single and place <= len(axes):
            axes.insert(place, single.pop(0))
    return axes + single


def carry_out(model: ir.Model, steps: Plan) -> list[ir.Node]:
    """Make the nodes of a plan; none if it shows the base as it is."""
    nodes: list[ir.Node] = []
    value = steps.base
    dtype = value.dtype
    if steps.split is not None:
        nodes.append(reshape_node(model, value, steps.split))
    if steps.perm is not None:
        value = nodes[-1].outputs[0] if nodes else value
        before = dims(value) or ()
        shape = [before[axis] for axis in steps.perm]
        perm = ir.AttrInt64s("perm", steps.perm)
        nodes.append(new_node("Transpose", [value], {"perm": perm}, shape=shape, dtype=dtype))
    if steps.shape is not None:
        value = nodes[-1].outputs[0] if nodes else value
        nodes.append(reshape_node(model, value, steps.shape))
    return nodes


def reshape_node(model: ir.Model, value: ir.Value, shape: Sequence[Size]) -> ir.Node:
    """Make a Reshape to a shape of a view."""
    return reshape(model, value, [extent_of(size) for size in shape])


def ends(value: ir.Value) -> list[ir.Value]:
    """Return the values of all chains from here that another node than a view reads."""
    found, waiting = [], [value]
    while waiting:
        value = waiting.pop()
        readers = [use.node for use in value.uses()]
        if value.is_graph_output() or not all(map(is_view, readers)):
            found.append(value)
        for reader in readers:
            if is_view(reader) and reader.inputs[0] is value:
                waiting += reader.outputs
    return found[::-1]


def chain_cost(value: ir.Value, base: ir.Value) -> Cost:
    """Return the cost of the nodes that only this chain needs, from `base` to `value`."""
    copies = nodes = 0
    while value is not base:
        node = value.producer()
        if node is None or not is_view(node):
            break
        copies += node.op_type not in _FREE
        nodes += 1
        value = node.inputs[0]
        if only_use(value) is None:
            break
    return copies, nodes


def simplify_views(model: ir.Model) -> int:
    """Replace each chain of Reshape, Transpose and their like by a shorter one that does the same.

    Pairs of transposes that cancel leave nothing. Returns how many chains changed.
    """
    count = 0
    for node in list(model.graph):
        if node.graph is None or not is_view(node) or len(node.outputs) != 1:
            continue
        (output,) = node.outputs
        if output not in ends(output):
            continue
        view, shape = view_of(output), sizes(output)
        if view is None or shape is None or view.base is output:
            continue
        steps = plan(view, shape)
        if steps is None or not steps.cost < chain_cost(output, view.base):
            continue
        nodes = carry_out(model, steps)
        replace(node, nodes, value=None if nodes else view.base)
        count += 1
    return count
