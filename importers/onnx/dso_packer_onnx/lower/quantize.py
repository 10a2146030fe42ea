"""Elements between float32 and integers of 8 bits, as calls of `packer.operators`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..operator import elements, shape_of
from .code import count_in_c, operator_of
from .lowp import type_in_c

if TYPE_CHECKING:
    import onnx_ir as ir

    from ..operator import Operator


def quantize(node: ir.Node) -> Operator:
    """Lower float32 to integers of 8 bits, by one scale."""
    x, scale, zero = (*node.inputs, None)[:3]
    (out,) = node.outputs
    return _elements("quantize", node, x, scale, zero, type_in_c(out))


def dequantize(node: ir.Node) -> Operator:
    """Lower integers of 8 bits to float32, by one scale."""
    x, scale, zero = (*node.inputs, None)[:3]
    assert x is not None
    return _elements("dequantize", node, x, scale, zero, type_in_c(x))


def _elements(
    name: str,
    node: ir.Node,
    x: ir.Value | None,
    scale: ir.Value | None,
    zero: ir.Value | None,
    type_: str,
) -> Operator:
    (out,) = node.outputs
    inputs = [value for value in (x, scale, zero) if value is not None]
    given = "x2" if zero is not None else "0"
    count = count_in_c(shape_of(out))
    body = f"  return dso_op_{name}(x0, {count}, x1, {given}, {type_}, y0);\n"
    return operator_of(
        name, body, inputs, [out], parts=["quantize"], flops=2 * elements(shape_of(out))
    )


def dynamic_quantize(node: ir.Node) -> Operator:
    """Lower float32 to integers of 8 bits, by the range of all elements."""
    (x,) = node.inputs
    assert x is not None
    count = count_in_c(shape_of(x))
    body = f"""\
  dso_op_quantize_range(x0, {count}, y1, y2);
  return dso_op_quantize(x0, {count}, y1, y2, DSO_OP_UINT8, y0);
"""
    flops = 4 * elements(shape_of(x))
    return operator_of("dynamic_quantize", body, [x], node.outputs, parts=["quantize"], flops=flops)
