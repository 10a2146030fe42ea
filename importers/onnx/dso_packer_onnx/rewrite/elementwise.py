"""Chains of elementwise operators become dso.Elementwise: one loop, without values between."""

from __future__ import annotations

import heapq
from collections.abc import Collection

import onnx_ir as ir

from ..lower.expression import EXPRESSIONS
from .graph import DSO, dims, is_constant, is_float32, new_node, replace, same_shape
from .record import record_fold

MOST_NODES = 64  # of one loop
MOST_INPUTS = 12


def fuse_elementwise(model: ir.Model) -> int:
    """Join elementwise float32 operators to dso.Elementwise; return how many nodes were joined.

    A value between two of them is read by these only, and has the shape of the output, so that
    nothing is computed twice. The attribute ``graph`` has the operators: its inputs are the
    node's in order, its initialisers are constants of one element, its output is the node's.
    """
    count = 0
    order = {node: index for index, node in enumerate(model.graph)}
    for last in reversed(list(order)):
        if last.graph is None or not is_fused(last):
            continue
        nodes = _chain(last, order)
        _join(model, nodes)
        count += len(nodes)
    return count


def is_fused(node: ir.Node) -> bool:
    """Return True if a node can be a part of a loop."""
    if node.domain or node.op_type not in EXPRESSIONS or len(node.outputs) != 1:
        return False
    values = [value for value in (*node.inputs, node.outputs[0]) if value is not None]
    return is_float32(*values) and all(dims(value) is not None for value in values)


def _chain(last: ir.Node, order: dict[ir.Node, int]) -> list[ir.Node]:
    """Return the nodes of the loop that computes the output of `last`, in order."""
    chain, inputs = {last}, len(_inputs([last]))
    # The readers of a value come before it: then all of them are known to be in the loop or not.
    by_index = {-order[last]: last}
    waiting = _producers(last, order, by_index)
    heapq.heapify(waiting)
    while waiting and len(chain) < MOST_NODES:
        made = by_index[heapq.heappop(waiting)]
        if not is_fused(made) or not _is_inner(made, last, chain):
            continue
        if len(_inputs([*chain, made])) > max(MOST_INPUTS, inputs):
            continue
        chain.add(made)
        for item in _producers(made, order, by_index):
            heapq.heappush(waiting, item)
    return sorted(chain, key=order.__getitem__)


def _producers(node: ir.Node, order: dict[ir.Node, int], known: dict[int, ir.Node]) -> list[int]:
    """Return the nodes before a node that are not known yet, by their negative places."""
    found = []
    for value in node.inputs:
        made = None if value is None else value.producer()
        if made in order and -order[made] not in known:
            known[-order[made]] = made
            found.append(-order[made])
    return found


def _is_inner(made: ir.Node, last: ir.Node, chain: set[ir.Node]) -> bool:
    value = made.outputs[0]
    if value.is_graph_output() or not all(use.node in chain for use in value.uses()):
        return False
    return same_shape(value, last.outputs[0])


def _inputs(nodes: Collection[ir.Node]) -> list[ir.Value]:
    """Return the values that a loop reads, in order and without constants of one element."""
    made = {node.outputs[0] for node in nodes}
    found = {value: None for node in nodes for value in node.inputs if value is not None}
    return [value for value in found if value not in made and not is_number(value)]


def is_number(value: ir.Value) -> bool:
    """Return True if a value is a constant of one element."""
    return is_constant(value) and value.const_value.size == 1


def _join(model: ir.Model, nodes: list[ir.Node]) -> None:
    inputs = _inputs(nodes)
    last = nodes[-1]
    new = new_node(
        "Elementwise",
        inputs,
        {"graph": _loop(model, nodes, inputs)},
        like=last.outputs[0],
        name=last.name,
        domain=DSO,
    )
    numbers = [v for node in nodes for v in node.inputs if v is not None and is_number(v)]
    for value in numbers:
        record_fold(model, value, None, f"a number in the loop {last.name!r}")
    replace(last, [new])


def _loop(model: ir.Model, nodes: list[ir.Node], inputs: list[ir.Value]) -> ir.Graph:
    """Return the operators of a loop as a graph that reads nothing outside of it."""
    inner = {value: _copy(value) for value in inputs}
    numbers: list[ir.Value] = []
    made: list[ir.Node] = []
    for node in nodes:
        for value in node.inputs:
            if value is not None and value not in inner:
                inner[value] = _copy(value)
                numbers.append(inner[value])
        values = [None if value is None else inner[value] for value in node.inputs]
        output = node.outputs[0]
        inner[output] = _copy(output)
        made.append(
            ir.Node(
                "",
                node.op_type,
                values,
                list(node.attributes.values()),
                outputs=[inner[output]],
                name=node.name,
            )
        )
    versions = {"": model.graph.opset_imports.get("", 23)}
    return ir.Graph(
        [inner[value] for value in inputs],
        [inner[nodes[-1].outputs[0]]],
        nodes=made,
        initializers=numbers,
        opset_imports=versions,
        name="loop",
    )


def _copy(value: ir.Value) -> ir.Value:
    return ir.Value(
        name=value.name,
        shape=value.shape,
        type=value.type,
        const_value=value.const_value if is_number(value) else None,
    )
