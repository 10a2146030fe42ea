"""Nodes with open extents as plain loops: every extent is an expression of the parameters.

One function for each kind of node makes its C: loops over the elements of the result, and for each
tensor the distance to the next element along each loop. Values that decide places (indices, the
ends of a Slice) are compared with the declared extents before memory is touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dtypes import c_type
from ...operator import Operator
from ..one_node import results
from ..refused import refuse
from . import chosen, movement, reductions, scatter, spectrum, values, windows
from .elements import cast_bfloat16, elementwise, is_cast_of_bfloat16
from .scalar import scalar_in_c

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx_ir as ir

_TYPES = {
    *("bool", "float", "double"),
    *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)),
}


def has_open_loops(node: ir.Node) -> bool:
    """Return True if a kind of node has loops here."""
    return _rule(node) is not None


def lower_open(node: ir.Node) -> Operator:
    """Make the C function of a node with open extents, whose kind has loops here.

    Raises OperatorRefusedError if there are none for its data types or attributes.
    """
    if is_cast_of_bfloat16(node):
        return cast_bfloat16(node)
    rule = _rule(node)
    assert rule is not None
    takes_halves = rule is elementwise or node.op_type in {*movement.RULES, "Pad", "Shape"}
    for value in (*node.inputs, *results(node)):
        type_ = None if value is None else c_type(value)
        if type_ and type_ not in _TYPES and not (takes_halves and type_ == "_Float16"):
            raise refuse(node, "dtype", f"value {value.name!r}")
    return rule(node)


_RULES: dict[str, Callable[[ir.Node], Operator]] = {
    **chosen.RULES,
    **movement.RULES,
    **reductions.RULES,
    **scatter.RULES,
    **spectrum.RULES,
    **values.RULES,
    **windows.RULES,
}


def _rule(node: ir.Node) -> Callable[[ir.Node], Operator] | None:
    if node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type in _RULES:
        return _RULES[node.op_type]
    return elementwise if scalar_in_c(node, ["0"] * 8) else None
