"""dso.MatMulBits: products whose weight is stored with 4 or 8 bits.

A weight is rounded while packing, or has integers in the model (rewrite/bits.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from packer.operators import PANEL, quantize_matmul

from ..extent import in_c, product
from ..operator import elements, shape_of
from ..rewrite.graph import DSO, is_constant, is_float32, is_node, new_node, replace
from .code import count_in_c, operator_of
from .epilogue import after_in_c
from .packing import packed_integers, packed_matmul_bits

if TYPE_CHECKING:
    import onnx_ir as ir

    from ..operator import Operator

_FLOAT = 4
_SCALES = 4  # the input with the scales of a weight that is integers in the model
_LEAST = 16  # inputs of a product: fewer have nothing to share a scale with


def use_bits(model: ir.Model, bits: int, block: int) -> list[str]:
    """Turn products with a constant matrix into dso.MatMulBits.

    Returns a note with the largest error of each weight, in the order of the graph.
    """
    found: list[str] = []
    for node in list(model.graph):
        if not _fits(node):
            continue
        weight = node.inputs[1]
        assert weight is not None
        assert weight.const_value is not None
        matrix = weight.const_value.numpy()
        matrix = matrix.T if node.attributes.get_int("trans_b", 0) else matrix
        try:
            integers, scales = quantize_matmul(matrix, bits, block)
        except ValueError:
            continue  # a weight that is not finite stays as it is
        steps = np.repeat(scales, block, 0)[: len(integers)]
        error = float(np.abs(integers * steps - matrix).max(initial=0))
        found.append(f"{weight.name} {error:.2g}")
        attributes = {key: item.value for key, item in node.attributes.items()}
        attributes |= {"bits": bits, "block": block}
        made = new_node(
            "MatMulBits", node.inputs, attributes, like=node.outputs[0], name=node.name, domain=DSO
        )
        replace(node, [made])
    what = f"{bits} bits in blocks of {block}"
    if not found:
        return [f"weights of {what}: no product has a constant matrix of float32"]
    return [f"{len(found)} weights of {what}; the largest error of each: {', '.join(found)}"]


def _fits(node: ir.Node) -> bool:
    if not is_node(node, "MatMul", domain=DSO) or node.attributes.get_int("trans_a", 0):
        return False
    a, weight = node.inputs[:2]
    if not is_float32(a, weight) or not is_constant(weight) or weight is None:
        return False
    shape = shape_of(weight)
    inner = shape[-1 if node.attributes.get_int("trans_b", 0) else 0]
    return len(shape) == 2 and isinstance(inner, int) and inner >= _LEAST


def matmul_bits(node: ir.Node) -> Operator:
    """Lower a product; all rows are one matrix."""
    a, b, bias, residual = (*node.inputs, None, None)[:4]
    assert a is not None
    assert b is not None
    out = shape_of(node.outputs[0])
    bits, block = (node.attributes.get_int(name, 0) for name in ("bits", "block"))
    is_transposed = bool(node.attributes.get_int("trans_b", 0))
    if len(node.inputs) > _SCALES:
        scales = node.inputs[_SCALES]
        assert scales is not None
        factor = packed_integers(b, scales, bits=bits, block=block)
    else:
        factor = packed_matmul_bits(b, is_transposed=is_transposed, bits=bits, block=block)
    inner, columns = shape_of(a)[-1], out[-1]
    assert isinstance(columns, int)
    rows, panels = product(out[:-1]), -(-columns // PANEL)
    added = f"x{2 + (bias is not None)}" if residual is not None else ""
    floats = 0 if rows == 1 else product((panels * PANEL, rows))
    body = f"""\
  const struct dso_op_matmul_bits product = {{
      .rows = {count_in_c(out[:-1])}, .inner = {in_c(inner)}, .columns = {columns},
      .bits = {bits}, .block = {block},
      .a = x0, .a_row = {in_c(inner)}, .b = x1,
      .out = y0, .out_row = {columns},
      .after = {after_in_c(node, "x2" if bias is not None else "", added)},
{"      .workspace = workspace," if floats else ""}
  }};
  return dso_op_matmul_bits(&product);
"""
    return operator_of(
        "matmul_bits",
        body,
        [value for value in (a, factor, bias, residual) if value is not None],
        node.outputs,
        workspace=product((_FLOAT, floats)),
        parts=["matmul_bits"],
        flops=2 * elements((*out, inner)),
    )
