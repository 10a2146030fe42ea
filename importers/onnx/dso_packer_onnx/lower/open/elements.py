"""Elementwise nodes with open extents, with broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...operator import shape_of
from ..one_node import results
from .parts import broadcast, indices_of, inputs_of, merged, nest, operator, place, strides
from .scalar import scalar_in_c

if TYPE_CHECKING:
    import onnx_ir as ir

    from ...operator import Operator


def elementwise(node: ir.Node) -> Operator:
    """Lower a node whose element of the result is an expression of the inputs' elements."""
    (out,) = results(node)
    shape, inputs = shape_of(out), list(dict.fromkeys(inputs_of(node)))
    steps = [broadcast(shape_of(value), len(shape)) for value in inputs]
    extents, (*places, made) = merged(shape, [*steps, strides(shape)])
    names = indices_of(len(extents))
    elements = {
        value: f"x{i}[{place(of, names)}]"
        for i, (value, of) in enumerate(zip(inputs, places, strict=True))
    }
    given = ["" if v is None or not v.name else elements[v] for v in node.inputs]
    code = scalar_in_c(node, given)
    assert code is not None
    body = f"    y0[{place(made, names)}] = {code.value};\n"
    return operator(node, nest(extents, code.checks + body), inputs)
