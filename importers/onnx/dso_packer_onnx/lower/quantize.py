"""Elements between float32 and integers: 8 bits by `packer.operators`, 4 bits by loops."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import onnx_ir as ir

from ..operator import elements, shape_of
from .code import count_in_c, operator_of
from .lowp import type_in_c

if TYPE_CHECKING:
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


# Two integers in a byte, the first one in the low bits. `steps` are the distances of the scales.
_UNPACK = """
static inline void @_run(const uint8_t *x, int64_t first, int64_t count,
                         const float *restrict scale, const float *restrict zero, const int step,
                         float *restrict y) {
  enum { PART = 256 };
  for (int64_t at = 0; at < count; at += PART) {
    const int64_t begin = first + at, left = count - at < PART ? count - at : PART;
    const int64_t bytes = (begin + left + 1) / 2 - begin / 2;
    int8_t q[PART + 2];
    for (int64_t i = 0; i < bytes; i++) {
      q[2 * i] = (int8_t)(x[begin / 2 + i] & 15);
      q[2 * i + 1] = (int8_t)(x[begin / 2 + i] >> 4);
    }
    const int8_t *from = q + begin % 2;
    for (int64_t i = 0; i < left; i++) {
      const float number = (float)(SIGNED ? (from[i] ^ 8) - 8 : from[i]);
      const int64_t j = (at + i) * step;
      y[begin + i] = (number - (zero ? zero[j] : 0)) * scale[j];
    }
  }
}
"""


def unpack(node: ir.Node) -> Operator:
    """Lower constants of 4 bits to float32: a run has one scale, or one for each element."""
    x, scale, zero = (*node.inputs, None)[:3]
    assert x is not None
    assert scale is not None
    shape = [int(extent) for extent in shape_of(x)]
    axis, block = (node.attributes.get_int(name, 0) for name in ("axis", "block"))
    extent, inner, count = shape[axis], prod(shape[axis + 1 :]), prod(shape)
    blocks = -(-extent // block) if block else 1
    # Of each row: its elements, runs and the elements of a run; the first scale of a run.
    row, runs, run, first = extent * inner, extent, inner, "b"
    if block and inner == 1:
        runs, run, first = blocks, block, f"a * {blocks} + b"
    elif block:
        first = f"(a * {blocks} + b / {block}) * {inner}"
    elif prod(shape_of(scale)) == 1:
        row, runs, run, first = count, 1, count, "0"
    elif inner == 1:
        runs, run, first = 1, extent, "0"
    step = int(bool(block) == (inner > 1) and prod(shape_of(scale)) != 1)
    given = "x2 + first" if zero is not None else "NULL"
    body = f"""\
  for (int64_t a = 0; a < {count // max(row, 1)}; a++)
    for (int64_t b = 0; b < {runs}; b++) {{
      const int64_t begin = a * {row} + b * {run}, left = {row} - b * {run}, first = {first};
      @_run(x0, begin, left < {run} ? left : {run}, x1 + first, {given}, {step}, y0);
    }}
  return 0;
"""
    is_signed = str(int(x.dtype == ir.DataType.INT4))
    inputs = [value for value in (x, scale, zero) if value is not None]
    before = _UNPACK.replace("SIGNED", is_signed)
    return operator_of("unpack", body, inputs, node.outputs, flops=2 * count, before=before)
