"""Branches whose results have different ranks: the nodes that read such a result move into both.

There each copy reads a result of one rank. More nodes move until the results agree, or until the
graph returns them: each call decides the rank of an output. PyTorch writes such an If for `squeeze`
of an open axis.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import dropwhile, islice
from typing import TYPE_CHECKING

from .branches import unused_name
from .types import substitute, values_read

if TYPE_CHECKING:
    import onnx_ir as ir

# In `ir.Node.meta` of an If: how many nodes moved last, and how many moves made its graph.
MOVED, _DEPTH = "moved", "depth"
MOST_DEPTH = 4  # each move doubles what follows
BRANCHES = ("then_branch", "else_branch")


def are_read(graph: Iterable[ir.Node], values: Collection[ir.Value]) -> bool:
    """Return True if a node reads one of some values; `ir.Value.uses` has removed nodes too."""
    return any(not {*values}.isdisjoint(values_read(node)) for node in graph)


def move_readers(node: ir.Node, values: Collection[ir.Value]) -> None:
    """Move some nodes that read results of an If, with what is between, into its branches.

    Another If takes its place.
    """
    import onnx_ir as ir

    graph = node.graph
    assert graph is not None
    after = [*islice(dropwhile(lambda one: one is not node, graph), 1, None)]
    count = 2 * node.meta.get(MOVED, 0) or 1
    moved = _readers(node, values, after, count)
    following = after[after.index(moved[-1]) + 1 :]
    left = {*after} - {*moved}
    read = {value for one in left for value in values_read(one)} | {*graph.outputs}
    made = [value for one in (node, *moved) for value in one.outputs]
    results = [value for value in made if value in read]
    for one in reversed(moved):
        graph.remove(one)
        if one.op_type == "If":
            one.meta[_DEPTH] = node.meta.get(_DEPTH, 0) + 1
    tail = ir.Graph([], [], nodes=moved)
    branches = [_with_tail(node, name, tail, results) for name in BRANCHES]
    attributes = [ir.AttrGraph(*pair) for pair in zip(BRANCHES, branches, strict=True)]
    name = node.name or str(node.outputs[0].name)
    new = ir.Node("", "If", [node.inputs[0]], attributes, num_outputs=len(results), name=name)
    new.meta[MOVED], new.meta[_DEPTH] = count, node.meta.get(_DEPTH, 0)
    if following:
        graph.insert_before(following[0], new)
    else:
        graph.append(new)
    for old, one in zip(results, new.outputs, strict=True):
        name, old.name = old.name, None
        one.name, one.type, one.shape = name, old.type, old.shape
        old.replace_all_uses_with(one, replace_graph_outputs=True)
    graph.remove(node)


def is_too_deep(node: ir.Node) -> bool:
    """Return True if so many moves made the graph of an If that more would make it too large."""
    return int(node.meta.get(_DEPTH, 0)) >= MOST_DEPTH


def _readers(
    node: ir.Node, values: Collection[ir.Value], after: Sequence[ir.Node], count: int
) -> list[ir.Node]:
    """Return the first readers of values, and the nodes between that depend on the If."""
    read, made = {*values}, {*node.outputs}
    found: list[ir.Node] = []
    waiting: list[ir.Node] = []
    for one in after:
        used = values_read(one)
        if not made.isdisjoint(used):
            waiting.append(one)
            made.update(one.outputs)
        if not read.isdisjoint(used):
            read.update(one.outputs)
            found, waiting, count = [*found, *waiting], [], count - 1
            if not count:
                break
    return found


def _with_tail(node: ir.Node, name: str, tail: ir.Graph, results: Sequence[ir.Value]) -> ir.Graph:
    """Return a copy of a branch that a copy of the moved nodes follows."""
    branch = node.attributes[name].as_graph().clone(allow_outer_scope_values=True)
    copy = tail.clone(allow_outer_scope_values=True)
    made = dict(zip(node.outputs, branch.outputs, strict=True))
    for old, new in made.items():
        substitute(copy, old, new)
    used = {value.name for one in branch for value in one.outputs} | {*branch.initializers}
    pairs = zip(tail, copy, strict=True)
    made |= {old: new for a, b in pairs for old, new in zip(a.outputs, b.outputs, strict=True)}
    nodes = [*copy]
    for value in (value for one in nodes for value in one.outputs if value.name):
        value.name = unused_name(str(value.name), used)
    copy.remove(nodes)
    branch.outputs.clear()
    branch.extend(nodes)
    branch.outputs.extend(made[value] for value in results)
    return branch
