"""dso.MatMulBits and dso.RowsBits: products and tables whose weight is stored with 4 or 8 bits.

A weight is rounded while packing, or has integers in the model (rewrite/bits.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import onnx_ir as ir

from packer.operators import PANEL, quantize_matmul, workspace

from ..extent import in_c, product
from ..operator import elements, shape_of
from ..rewrite.bits import signed
from ..rewrite.graph import DSO, is_constant, is_float32, is_node, new_node, replace
from .code import count_in_c, operator_of
from .epilogue import after_in_c
from .guards import HELPER, INCLUDE
from .packing import packed_integers, packed_matmul_bits

if TYPE_CHECKING:
    from ..operator import Operator

_FLOAT = 4
_SCALES = 4  # the input with the scales of a weight that is integers in the model
_LEAST = 16  # inputs of a product: fewer have nothing to share a scale with
_NARROW = 256  # elements of a row
_COLUMNS = 1024  # of a matrix that are rounded at once


class Bits(NamedTuple):
    """How products and tables are stored and computed."""

    weight: int = 0  # bits of float32 weights: 4, 8, or 0 to keep them
    block: int = 32  # inputs that share a scale
    activation: int = 0  # bits of what products with few bits multiply: 8, or 0 for float32


def use_bits(model: ir.Model, bits: Bits) -> list[str]:
    """Turn products with a constant matrix into dso.MatMulBits, and wide tables into dso.RowsBits.

    Returns a note with the largest error of each weight, in the order of the graph.
    """
    notes = [_round_weights(model, bits)] if bits.weight else []
    if bits.activation:
        products = [node for node in model.graph if is_node(node, "MatMulBits", domain=DSO)]
        for node in products:
            node.attributes["activation_bits"] = ir.AttrInt64("activation_bits", bits.activation)
        text = f"{len(products)} products round what they multiply to {bits.activation} bits"
        none = "; give weight_bits, or a model whose weights have few bits"
        notes.append(text if products else text + none)
    return notes


def _round_weights(model: ir.Model, bits: Bits) -> str:
    errors: dict[str, float] = {}
    for node in list(model.graph):
        is_table = _is_table(node)
        if not is_table and not _fits(node):
            continue
        weight = node.inputs[0 if is_table else 1]
        assert weight is not None
        assert weight.const_value is not None
        is_transposed = is_table or bool(node.attributes.get_int("trans_b", 0))
        matrix = weight.const_value.numpy()
        try:
            error = _error(matrix.T if is_transposed else matrix, bits)
        except ValueError:
            continue  # a weight that is not finite stays as it is
        errors[str(weight.name)] = error
        attributes = {key: item.value for key, item in node.attributes.items()}
        attributes |= {"bits": bits.weight, "block": bits.block}
        kind = "RowsBits" if is_table else "MatMulBits"
        like = node.outputs[0]
        made = new_node(kind, node.inputs, attributes, like=like, name=node.name, domain=DSO)
        replace(node, [made])
    what = f"{bits.weight} bits in blocks of {bits.block}"
    if not errors:
        return f"weights of {what}: no product has a constant matrix of float32"
    found = ", ".join(f"{name} {error:.2g}" for name, error in errors.items())
    return f"{len(errors)} weights of {what}; the largest error of each: {found}"


def _error(matrix: Any, bits: Bits) -> float:
    """Return the largest error of a rounded matrix, a panel of columns at a time."""
    most = 0.0
    for start in range(0, matrix.shape[1], _COLUMNS):
        part = matrix[:, start : start + _COLUMNS]
        integers, scales = quantize_matmul(part, bits.weight, bits.block)
        steps = np.repeat(scales, bits.block, 0)[: len(integers)]
        most = max(most, float(np.abs(integers * steps - part).max(initial=0)))
    return most


def _is_table(node: ir.Node) -> bool:
    """Return True for a table of wide rows; narrow ones are angles of positions, not tokens."""
    if not is_node(node, "Gather") or node.attributes.get_int("axis", 0):
        return False
    table = node.inputs[0]
    if table is None or not is_float32(table) or not is_constant(table):
        return False
    shape = shape_of(table)
    return len(shape) == 2 and shape[0] >= PANEL and shape[1] > _NARROW  # type: ignore[operator]


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
    activation_bits = node.attributes.get_int("activation_bits", 0)
    is_transposed = bool(node.attributes.get_int("trans_b", 0))
    has_zeros = bool(node.attributes.get_int("has_zeros", 0))
    factor = _factor(node, b, is_transposed)
    inner, columns = shape_of(a)[-1], out[-1]
    assert isinstance(columns, int)
    assert isinstance(inner, int)
    added = f"x{2 + (bias is not None)}" if residual is not None else ""
    integers = workspace.bits_of_row(inner, block, activation_bits=activation_bits)
    body = f"""\
  const struct dso_op_matmul_bits product = {{
      .rows = {count_in_c(out[:-1])}, .inner = {in_c(inner)}, .columns = {columns},
      .bits = {bits}, .block = {block}, .activation_bits = {activation_bits},
      .has_zeros = {int(has_zeros)},
      .a = x0, .a_row = {in_c(inner)}, .b = x1,
      .out = y0, .out_row = {columns},
      .after = {after_in_c(node, "x2" if bias is not None else "", added)},
      .workspace = workspace,
  }};
  return dso_op_matmul_bits(&product);
"""
    return operator_of(
        "matmul_bits",
        body,
        [value for value in (a, factor, bias, residual) if value is not None],
        node.outputs,
        workspace=product((_FLOAT, integers, *(out[:-1] if activation_bits else ()))),
        parts=["matmul_bits"],
        flops=2 * elements((*out, inner)),
    )


def _factor(node: ir.Node, weight: ir.Value, is_transposed: bool) -> ir.Value:
    """Return the packed weight: rounded, or integers of the model."""
    form = {name: node.attributes.get_int(name, 0) for name in ("bits", "block")}
    if len(node.inputs) <= _SCALES:
        return packed_matmul_bits(weight, is_transposed=is_transposed, **form)
    scales = node.inputs[_SCALES]
    assert scales is not None
    zeros = _zeros_of(node, weight, scales) if node.attributes.get_int("has_zeros", 0) else None
    return packed_integers(weight, scales, zeros, is_transposed=is_transposed, **form)


def _zeros_of(node: ir.Node, weight: ir.Value, scales: ir.Value) -> Any:
    """Return the zeros of a weight; without them in the model, 0 of its unsigned integers."""
    zeros = [*node.inputs[_SCALES:], None][1]
    if zeros is not None:
        return signed(zeros)
    assert scales.const_value is not None
    least = -8 if weight.dtype == ir.DataType.UINT4 else -128
    return np.full(scales.const_value.shape.numpy(), least, np.int8)


def rows_bits(node: ir.Node) -> Operator:
    """Lower a table, whose rows are the columns of a packed matrix; an index is checked."""
    table, indices = node.inputs[:2]
    assert table is not None
    assert indices is not None
    bits, block, has_zeros = (
        node.attributes.get_int(name, 0) for name in ("bits", "block", "has_zeros")
    )
    factor = _factor(node, table, True)
    rows, inner = shape_of(table)
    body = f"""\
  const struct dso_op_matmul_bits table = {{
      .inner = {inner}, .bits = {bits}, .block = {block}, .has_zeros = {has_zeros}, .b = x0}};
  for (int64_t i = 0; i < {count_in_c(shape_of(indices))}; i++)
    if (x1[i] < -{rows} || x1[i] >= {rows})
      return dso_outside("Gather: index 0 of input 1", -{rows}, {rows} - 1, x1[i]);
  for (int64_t i = 0; i < {count_in_c(shape_of(indices))}; i++)
    dso_op_matmul_bits_column(&table, x1[i] < 0 ? x1[i] + {rows} : x1[i], y0 + i * {inner});
  return 0;
"""
    return operator_of(
        "rows_bits",
        body,
        [factor, indices],
        node.outputs,
        parts=["matmul_bits"],
        before=INCLUDE + HELPER,
    )
