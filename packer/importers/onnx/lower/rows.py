"""Matrix products, attention and normalisation, as calls of `packer.operators`."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, NamedTuple

from ....operators import workspace as need
from ....operators.packed import PANEL
from ..operator import elements, shape_of
from .code import count_in_c, is_symbolic, operator_of
from .epilogue import after_in_c, float_in_c
from .packing import packed_matmul

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx_ir as ir

    from ..operator import Operator, Shape

_FLOAT = 4


class _Batches(NamedTuple):
    """The batch of a product: extents, and the distances of both factors and the result."""

    extents: tuple[int | str, ...]
    a: tuple[int, ...]
    b: tuple[int, ...]
    out: tuple[int, ...]

    def split(self) -> tuple[_Batches, _Batches]:
        """Return all dimensions but the last two, and these."""
        extents, a, b, out = self
        outside = _Batches(extents[:-2], a[:-2], b[:-2], out[:-2])
        return outside, _Batches(extents[-2:], a[-2:], b[-2:], out[-2:])


def matmul(node: ir.Node) -> Operator:
    """Lower a product; a weight on the right is packed."""
    a, b, bias, residual = (*node.inputs, None, None)[:4]
    assert a is not None
    assert b is not None
    trans_a, trans_b = (bool(node.attributes.get_int(f"trans_{f}", 0)) for f in "ab")
    a_shape, b_shape, out_shape = shape_of(a), shape_of(b), shape_of(node.outputs[0])
    inner, columns = elements(a_shape[-2 if trans_a else -1 :][:1]), elements(out_shape[-1:])
    is_packed = b.const_value is not None
    # All rows are one matrix where all products have the same right factor.
    if not trans_a and all(extent == 1 for extent in b_shape[:-2]):
        batches, row_shape = _Batches((), (), (), ()), out_shape[:-1]
    else:
        row_shape = out_shape[-2:-1]
        b_size = -(-columns // PANEL) * PANEL * inner if is_packed else inner * columns
        batches = _batches(out_shape, a_shape, b_shape, b_size)
    a_row, a_column = (1, elements(a_shape[-1:])) if trans_a else (inner, 1)
    b_row, b_column = (1, inner) if trans_b else (columns, 1)
    factor = packed_matmul(b, is_transposed=trans_b) if is_packed else b
    inputs = [value for value in (a, factor, bias, residual) if value is not None]
    added = f"x{2 + (bias is not None)} + out" if residual is not None else ""
    outside, inside = batches.split()
    rows = elements(row_shape)
    floats = need.matmul_workspace(
        max(rows, 2) if is_symbolic(node.outputs) else rows,
        inner,
        columns,
        a_column=a_column,
        b_column=None if is_packed else b_column,
    )
    body = f"""\
  const struct dso_op_matmul product = {{
      .batch = {_pair([_in_c(extent) for extent in inside.extents])},
      .rows = {count_in_c(row_shape)}, .inner = {inner}, .columns = {columns},
      .a = x0 + a, .a_batch = {_pair(inside.a)}, .a_row = {a_row}, .a_column = {a_column},
      .b = x1 + b, .b_batch = {_pair(inside.b)}, .b_row = {b_row}, .b_column = {b_column},
      .b_is_packed = {int(is_packed)},
      .out = y0 + out, .out_batch = {_pair(inside.out)}, .out_row = {columns},
      .after = {after_in_c(node, "x2" if bias is not None else "", added)},
{"      .workspace = workspace," if floats else ""}
  }};
  if (dso_op_matmul(&product)) return -1;
"""
    return operator_of(
        "matmul",
        _loops(outside, body) + "  return 0;\n",
        inputs,
        node.outputs,
        workspace=_FLOAT * floats * elements(inside.extents),
        parts=["matmul"],
        flops=2 * elements(out_shape) * inner,
    )


def _batches(out: Shape, a: Shape, b: Shape, b_size: int) -> _Batches:
    """Return the batch of a product with adjacent dimensions joined where both factors allow it."""
    sizes = [elements(shape[-2:]) for shape in (a, b, out)]
    sizes[1] = b_size
    steps = [
        _distances(shape[:-2], len(out) - 2, size)
        for shape, size in zip((a, b, out), sizes, strict=True)
    ]
    joined: list[tuple[int | str, list[int]]] = []
    for extent, *distances in zip(out[:-2], *steps, strict=True):
        if extent == 1:
            continue
        if joined and isinstance(extent, int):
            before, outer = joined[-1]
            whole = all(o == d * extent for o, d in zip(outer, distances, strict=True))
            if whole and isinstance(before, int):
                joined[-1] = (before * extent, distances)
                continue
        joined.append((extent, distances))
    found = [tuple(distances[i] for _, distances in joined) for i in range(3)]
    return _Batches(tuple(extent for extent, _ in joined), *found)


def _distances(shape: Shape, ndim: int, size: int) -> list[int]:
    """Return the distances along batch dimensions; 0 where the extent is 1 or missing."""
    distances, step = [], size
    for extent in reversed(shape):
        distances.append(0 if extent == 1 else step)
        step *= elements((extent,))
    return [0] * (ndim - len(shape)) + distances[::-1]


def _loops(outside: _Batches, body: str) -> str:
    """Put loops over the outer batch around a body, which uses the distances a, b and out."""
    places = {"a": outside.a, "b": outside.b, "out": outside.out}
    opened = "".join(
        f"  for (int64_t i{d} = 0; i{d} < {_in_c(extent)}; i{d}++)\n"
        for d, extent in enumerate(outside.extents)
    )
    lines = [
        f"    const int64_t {name} = "
        + (" + ".join(f"i{d} * {step}" for d, step in enumerate(steps) if step) or "0")
        + ";\n"
        for name, steps in places.items()
    ]
    return f"{opened}  {{\n{''.join(lines)}{body}  }}\n"


def _in_c(extent: int | str) -> int | str:
    return "batch" if isinstance(extent, str) else extent


def _pair(values: Sequence[int | str]) -> str:
    first, second = ([0, 0, *values])[-2:]
    return f"{{{first}, {second}}}"


def attention(node: ir.Node) -> Operator:
    """Lower softmax of q and k times v."""
    q, k, v, mask = (*node.inputs, None)[:4]
    assert q is not None
    assert k is not None
    assert v is not None
    layout = node.attributes.get_string("layout", "bhs")
    heads = node.attributes.get_int("num_heads", 0)
    kv_heads = node.attributes.get_int("kv_num_heads", 0) or heads
    of_q, of_k, of_v = (
        _Heads.of(value, layout, count)
        for value, count in ((q, heads), (k, kv_heads), (v, kv_heads))
    )
    out_layout = node.attributes.get_string("out_layout", layout)
    of_out = _Heads.of(node.outputs[0], out_layout or layout, of_q.heads)
    inputs = [value for value in (q, k, v, mask) if value is not None]
    batch = shape_of(q)[0]
    floats = need.attention_workspace(
        of_q.heads, of_k.heads, of_q.rows, of_k.rows, of_q.size, of_v.size
    )
    masked = _mask_in_c(shape_of(mask)) if mask is not None else ""
    scale = node.attributes.get_float("scale", 0.0)
    body = f"""\
  const struct dso_op_attention attention = {{
      .batch = {_in_c(batch)}, .heads = {of_q.heads}, .kv_heads = {of_k.heads},
      .rows = {of_q.rows}, .keys = {of_k.rows}, .size = {of_q.size}, .value_size = {of_v.size},
      .q = x0, .k = x1, .v = x2,
      {of_q.distances("q")}, {of_k.distances("k")}, {of_v.distances("v")},
{masked}
      .is_causal = {node.attributes.get_int("is_causal", 0)},
      .scale = {float_in_c(scale)},
      .out = y0, {of_out.distances("out")},
{"      .workspace = workspace," if floats else ""}
  }};
  return dso_op_attention(&attention);
"""
    per_element = of_q.heads * of_q.rows * of_k.rows * (of_q.size + of_v.size)
    return operator_of(
        "attention",
        body,
        inputs,
        node.outputs,
        workspace=_FLOAT * floats * elements((batch,)),
        parts=["attention"],
        flops=2 * per_element * elements((batch,)),
    )


class _Heads(NamedTuple):
    """How the heads of q, k, v or the result are in memory."""

    heads: int
    rows: int
    size: int
    batch: int
    head: int
    row: int

    @classmethod
    def of(cls, value: ir.Value, layout: str | None, heads: int) -> _Heads:
        """Read (batch, rows, heads * size), "bsh", or (batch, heads, rows, size), "bhs"."""
        shape = shape_of(value)
        extents = [elements((extent,)) for extent in shape[1:]]
        whole = prod(extents)
        if layout == "bsh":
            rows, width = extents[0], prod(extents[1:])
            return cls(heads, rows, width // heads, whole, width // heads, width)
        _, rows, size = extents
        return cls(extents[0], rows, size, whole, rows * size, size)

    def distances(self, name: str) -> str:
        """Return initialisers of the three distances in ``struct dso_op_attention``."""
        return f".{name}_batch = {self.batch}, .{name}_head = {self.head}, .{name}_row = {self.row}"


def _mask_in_c(shape: Shape) -> str:
    """Return initialisers for a mask that broadcasts to (batch, heads, rows, keys)."""
    batch, head, row = ((1, 1, 1, *shape)[-4:])[:3]
    keys = elements(shape[-1:])
    rows = elements((row,)) if row != 1 else 1
    heads = elements((head,)) if head != 1 else 1
    steps = (
        0 if batch == 1 else heads * rows * keys,
        0 if head == 1 else rows * keys,
        0 if row == 1 else keys,
    )
    return (
        f"      .mask = x3, .mask_batch = {steps[0]}, .mask_head = {steps[1]}, "
        f".mask_row = {steps[2]},"
    )


_KINDS = {"layer": "DSO_OP_LAYER", "rms": "DSO_OP_RMS", "softmax": "DSO_OP_SOFTMAX"}


def normalize(node: ir.Node) -> Operator:
    """Lower layer norm, RMS norm or softmax of rows."""
    x, scale, bias = (*node.inputs, None, None)[:3]
    assert x is not None
    shape = shape_of(x)
    axis = node.attributes.get_int("axis", -1) % len(shape)
    size = elements(shape[axis:])
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
