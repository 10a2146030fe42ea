"""Which operators of a model run in plain loops, and how much of the time that is."""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import TYPE_CHECKING

from .operator import elements, shape_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx_ir as ir

    from .operator import Operator

_MOST_SHOWN = 6
# Picoseconds of an operation of a product, of an element in memory, and of either in plain loops.
_OF_FLOP, _OF_ELEMENT, _OF_PLAIN = 15, 150, 600
_RECURRENT = ("GRU", "LSTM", "RNN")
_PRODUCTS = ("Gemm", "MatMul", "MatMulInteger", "QLinearMatMul")
_CHOOSING = ("Gather", "GatherElements", "GatherND", "Slice")  # read what they write
_CONVOLUTIONS = ("Conv", "ConvInteger", "DeformConv", "QLinearConv")


def plain_loops_note(operators: Sequence[Operator]) -> str:
    """List the operators whose code the generic generator wrote; "" without any.

    The share is that of the estimated time. Multiply-adds count twice, other operators have one
    operation for each element that they read or write.
    """
    cost: Counter[str] = Counter()
    nodes: dict[str, list[str]] = {}
    total = 0
    for operator in operators:
        node = operator.outputs[0].producer() if operator.code else None
        if node is None:
            continue
        own = max(_OF_FLOP * operator.flops, _OF_ELEMENT * _moved(operator))
        if operator.is_plain:
            own = _OF_PLAIN * _work(node)
            cost[node.op_type] += own
            nodes.setdefault(node.op_type, []).append(str(node.name or node.outputs[0].name))
        total += own
    if not nodes:
        return ""
    kinds = sorted(cost, key=lambda kind: -cost[kind])
    shown = [f"{_counted(kind, nodes[kind])} {_share(cost[kind], total)}" for kind in kinds]
    more = [f"{len(shown) - _MOST_SHOWN} more kinds"] if len(shown) > _MOST_SHOWN else []
    made = sum(1 for operator in operators if operator.code)
    return (
        f"{sum(map(len, nodes.values()))} of {made} operators run in plain loops, "
        f"{_share(cost.total(), total)} of the estimated time: "
        f"{', '.join([*shown[:_MOST_SHOWN], *more])}"
    )


def _counted(kind: str, nodes: Sequence[str]) -> str:
    """Name a node, or say how many there are of its kind, with the first one."""
    count = "" if len(nodes) == 1 else f"{len(nodes)} "
    return f"{count}{kind} ({nodes[0]!r}{', ...' if count else ''})"


def _share(part: int, total: int) -> str:
    percent = 100 * part / max(total, 1)
    return f"{percent:.0f}%" if percent >= 1 else "<1%"


def _moved(operator: Operator) -> int:
    return sum(elements(shape_of(value)) for value in (*operator.inputs, *operator.outputs))


def _work(node: ir.Node) -> int:
    """Return the operations of a node of ONNX, for one entry of a symbolic batch."""
    shapes = [[] if v is None or v.shape is None else _known(v) for v in node.inputs]
    made = sum(prod(_known(value)) for value in node.outputs if value.shape is not None)
    weight = 3 if node.op_type == "QLinearConv" else 1
    if node.op_type in _PRODUCTS and shapes[0]:
        is_turned = node.op_type == "Gemm" and node.attributes.get_int("transA", 0)
        return 2 * made * shapes[0][0 if is_turned else -1]
    if node.op_type in _CONVOLUTIONS:
        return 2 * made * prod(shapes[weight][1:])
    if node.op_type == "ConvTranspose":
        return 2 * prod(shapes[0]) * prod(shapes[1][1:])
    if node.op_type in _RECURRENT:
        return 2 * prod(shapes[0][:2]) * (prod(shapes[1]) + prod(shapes[2]))
    return made + (made if node.op_type in _CHOOSING else sum(map(prod, shapes)))


def _known(value: ir.Value) -> list[int]:
    """Return the extents of a value; 1 for the symbolic one."""
    return [extent if isinstance(extent, int) else 1 for extent in shape_of(value)]
