"""Elementwise nodes with open extents, with broadcasting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dtypes import dtype_name
from ...operator import shape_of
from ..code import count_in_c, operator_of
from ..one_node import results
from ..storage import HELPERS
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


def is_cast_of_bfloat16(node: ir.Node) -> bool:
    """Return True for a Cast between bfloat16 and float32."""
    values = [*inputs_of(node), *results(node)]
    return node.op_type == "Cast" and {*map(dtype_name, values)} == {"bfloat16", "float32"}


def cast_bfloat16(node: ir.Node) -> Operator:
    """Lower a Cast between bfloat16, which C lacks, and float32."""
    (x,), (out,) = inputs_of(node), results(node)
    function = "dso_widen" if dtype_name(out) == "float32" else "dso_round_to_bfloat16"
    body = f"  {function}(x0, y0, {count_in_c(shape_of(out))});\n  return 0;\n"
    return operator_of("cast", body, [x], [out], before=HELPERS)
