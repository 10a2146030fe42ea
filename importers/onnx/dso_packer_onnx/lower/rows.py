"""Matrix products, attention and normalisation, as calls of `packer.operators`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from packer.operators import PANEL
from packer.operators import workspace as need

from ..extent import Extent, expression_of, in_c, product, written
from ..operator import elements, shape_of
from .batches import Extents, loops
from .code import count_in_c, operator_of
from .epilogue import after_in_c, float_in_c
from .packing import half_in_c, packed_matmul

if TYPE_CHECKING:
    import onnx_ir as ir

    from ..operator import Operator, Shape

_FLOAT = 4


def matmul(node: ir.Node) -> Operator:
    """Lower a product; a weight on the right is packed."""
    a, b, bias, residual = (*node.inputs, None, None)[:4]
    assert a is not None
    assert b is not None
    is_packed = b.const_value is not None
    trans_b = bool(node.attributes.get_int("trans_b", 0))
    extents = Extents.of(node, _panels if is_packed else None)
    factor = packed_matmul(b, is_transposed=trans_b) if is_packed else b
    inputs = [value for value in (a, factor, bias, residual) if value is not None]
    added = f"x{2 + (bias is not None)} + out" if residual is not None else ""
    outside, inside = extents.batches.split()
    floats = _matmul_floats(extents, is_packed)
    body = f"""\
  const struct dso_op_matmul product = {{
{extents.in_c()}
      .a = x0 + a, .b = x1 + b, .out = y0 + out,
      .b_is_packed = {int(is_packed)},{half_in_c("b_type", factor)}
      .after = {after_in_c(node, "x2" if bias is not None else "", added)},
{"      .workspace = workspace," if floats else ""}
  }};
  if (dso_op_matmul(&product)) return -1;
"""
    return operator_of(
        "matmul",
        loops(outside, body) + "  return 0;\n",
        inputs,
        node.outputs,
        workspace=product((_FLOAT, floats, *inside.extents)),
        parts=["matmul"],
        flops=2 * elements((*shape_of(node.outputs[0]), extents.inner)),
    )


def double_matmul(node: ir.Node) -> Operator:
    """Lower a product of float64."""
    extents = Extents.of(node, None)
    outside, _ = extents.batches.split()
    body = f"""\
  const struct dso_op_double_matmul product = {{
{extents.in_c()}
      .a = x0 + a, .b = x1 + b, .out = y0 + out,
  }};
  if (dso_op_double_matmul(&product)) return -1;
"""
    return operator_of(
        "double_matmul",
        loops(outside, body) + "  return 0;\n",
        [value for value in node.inputs if value is not None],
        node.outputs,
        parts=["double_matmul"],
        flops=2 * elements((*shape_of(node.outputs[0]), extents.inner)),
    )


def _matmul_floats(extents: Extents, is_packed: bool) -> Extent:
    """Return the floats that one product needs; with open extents as many as it may need."""
    sizes = (product(extents.rows), extents.inner, extents.columns)
    rows, inner, columns = sizes
    if isinstance(rows, int) and isinstance(inner, int) and isinstance(columns, int):
        a_column, b_column = extents.a_steps[1], extents.b_steps[1]
        assert isinstance(a_column, int)
        assert isinstance(b_column, int)
        of_b = None if is_packed else b_column
        return need.matmul_workspace(rows, inner, columns, a_column=a_column, b_column=of_b)
    return written(need.most_of_matmul(*map(expression_of, sizes), is_packed=is_packed))


def _panels(inner: int, columns: int) -> int:
    return -(-columns // PANEL) * PANEL * inner


def attention(node: ir.Node) -> Operator:
    """Lower softmax of q and k times v."""
    q, k, v, mask = (*node.inputs, None)[:4]
    assert q is not None
    assert k is not None
    assert v is not None
    layout = node.attributes.get_string("layout", "bhs")
    heads = node.attributes.get_int("num_heads", 0)
    kv_heads = node.attributes.get_int("kv_num_heads", 0) or heads
    of_q = _Heads.of(q, layout, heads)
    kv_layout = node.attributes.get_string("kv_layout", layout)
    of_k, of_v = (_Heads.of(value, kv_layout, kv_heads) for value in (k, v))
    out_layout = node.attributes.get_string("out_layout", layout)
    of_out = _Heads.of(node.outputs[0], out_layout or layout, of_q.heads)
    inputs = [value for value in (q, k, v, mask) if value is not None]
    batch = shape_of(q)[0]
    sizes = (of_q.heads, of_k.heads, of_q.rows, of_k.rows, of_q.size, of_v.size)
    floats = written(need.attention_workspace(*map(expression_of, sizes)))
    masked = _mask_in_c(shape_of(mask)) if mask is not None else ""
    scale = node.attributes.get_float("scale", 0.0)
    has_past = bool(node.attributes.get_int("has_past", 0))
    past = f" .past = {in_c(of_k.rows)} - {in_c(of_q.rows)}," if has_past else ""
    body = f"""\
  const struct dso_op_attention attention = {{
      .batch = {in_c(batch)}, .heads = {of_q.heads}, .kv_heads = {of_k.heads},
      .rows = {in_c(of_q.rows)}, .keys = {in_c(of_k.rows)}, .size = {of_q.size},
      .value_size = {of_v.size},
      .q = x0, .k = x1, .v = x2,
      {of_q.distances("q")}, {of_k.distances("k")}, {of_v.distances("v")},
{masked}
      .is_causal = {node.attributes.get_int("is_causal", 0)},{past}
      .scale = {float_in_c(scale)},
      .out = y0, {of_out.distances("out")},
{"      .workspace = workspace," if floats else ""}
  }};
  return dso_op_attention(&attention);
"""
    work = elements((batch, of_q.heads, of_q.rows, of_k.rows, of_q.size + of_v.size))
    return operator_of(
        "attention",
        body,
        inputs,
        node.outputs,
        workspace=product((_FLOAT, floats, batch)),
        parts=["attention"],
        flops=2 * work,
    )


class _Heads(NamedTuple):
    """How the heads of q, k, v or the result are in memory."""

    heads: int
    rows: Extent
    size: int
    batch: Extent
    head: Extent
    row: Extent

    @classmethod
    def of(cls, value: ir.Value, layout: str | None, heads: int) -> _Heads:
        """Read (batch, rows, heads * size), "bsh", (batch, heads, rows, size), "bhs", or "sbhd"."""
        shape = shape_of(value)
        if layout == "sbhd":
            rows, _, _, size = shape
            assert isinstance(size, int)
            return cls(heads, rows, size, heads * size, size, product(shape[1:]))
        whole = product(shape[1:])
        if layout == "bsh":
            width = product(shape[2:])
            assert isinstance(width, int)
            return cls(heads, shape[1], width // heads, whole, width // heads, width)
        _, count, rows, size = shape
        assert isinstance(count, int)
        assert isinstance(size, int)
        return cls(count, rows, size, whole, product((rows, size)), size)

    def distances(self, name: str) -> str:
        """Return initialisers of the three distances in ``struct dso_op_attention``."""
        batch, head, row = map(in_c, (self.batch, self.head, self.row))
        return f".{name}_batch = {batch}, .{name}_head = {head}, .{name}_row = {row}"


def _mask_in_c(shape: Shape) -> str:
    """Return initialisers for a mask that broadcasts to (batch, heads, rows, keys)."""
    batch, head, row = ((1, 1, 1, *shape)[-4:])[:3]
    keys = shape[-1]
    steps = [
        in_c(0 if extent == 1 else product(inside))
        for extent, inside in ((batch, (head, row, keys)), (head, (row, keys)), (row, (keys,)))
    ]
    return (
        f"      .mask = x3, .mask_batch = {steps[0]}, .mask_head = {steps[1]}, "
        f".mask_row = {steps[2]},"
    )


_KINDS = {
    "layer": "DSO_OP_LAYER",
    "log_softmax": "DSO_OP_LOG_SOFTMAX",
    "rms": "DSO_OP_RMS",
    "softmax": "DSO_OP_SOFTMAX",
}


def normalize(node: ir.Node) -> Operator:
    """Lower layer norm, RMS norm or softmax of rows."""
    x, scale, bias = (*node.inputs, None, None)[:3]
    assert x is not None
    shape = shape_of(x)
    axis = node.attributes.get_int("axis", -1) % len(shape)
    size = count_in_c(shape[axis:])
    inputs = [value for value in (x, scale, bias) if value is not None]
    optional = "".join(
        f".{name} = x{inputs.index(value)}, "
        for name, value in (("scale", scale), ("bias", bias))
        if value is not None
    )
    kind = node.attributes.get_string("kind", "layer")
    body = f"""\
  const struct dso_op_normalize rows = {{
      .kind = {_KINDS[kind or "layer"]},
      .rows = {count_in_c(shape[:axis])}, .size = {size},
      .x = x0, .x_row = {size}, {optional}
      .out = y0, .out_row = {size},
      .epsilon = {float_in_c(node.attributes.get_float("epsilon", 0.0))},
  }};
  return dso_op_normalize(&rows);
"""
    return operator_of(
        "normalize", body, inputs, node.outputs, parts=["normalize"], flops=8 * elements(shape)
    )
