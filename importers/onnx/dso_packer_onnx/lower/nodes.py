"""Each node of a graph as an operator: by a fast kernel, or by generated C."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extent import symbols_of
from ..layout import DOMAIN
from ..operator import shape_of
from .fast import lower_fast
from .generic import lower_generic

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx_ir as ir

    from ..operator import Operator


def lower_nodes(graph: ir.Graph) -> list[Operator]:
    """Return the operator of each node, in the order of the graph.

    Raises ExportError if a node has no implementation; names it.
    """
    return [lower_fast(n) if n.domain == DOMAIN else lower_generic(n) for n in graph]


def in_order(operators: Sequence[Operator]) -> list[Operator]:
    """Return operators so that each follows what defines its symbols and writes its inputs."""
    if not any(operator.defines for operator in operators):
        return list(operators)
    makers = {id(value): one for one in operators for value in one.outputs}
    definers = {name: one for one in operators for name in one.defines}
    made: dict[int, Operator] = {}
    waiting = [(one, False) for one in reversed(operators)]
    while waiting:
        operator, is_ready = waiting.pop()
        if id(operator) in made:
            continue
        if is_ready:
            made[id(operator)] = operator
            continue
        shapes = (shape_of(value) for value in (*operator.inputs, *operator.outputs))
        extents = (extent for shape in shapes for extent in shape)
        names = {*symbols_of(extents), *operator.symbols} - {*operator.defines}
        needed = [makers.get(id(value)) for value in operator.inputs]
        needed += [definers.get(name) for name in sorted(names)]
        waiting.append((operator, True))
        waiting += [(one, False) for one in needed if one is not None and id(one) not in made]
    return [*made.values()]
