"""Products of 8-bit integers and bfloat16, as calls of `packer.operators`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....operators import workspace as need
from ..dtypes import c_type, dtype_name
from ..operator import elements, shape_of
from .batches import Extents, loops
from .code import count_in_c, operator_of
from .epilogue import after_in_c
from .packing import packed_narrow_matmul

if TYPE_CHECKING:
    import onnx_ir as ir

    from ..operator import Operator

_TYPES = {
    "float32": "DSO_OP_FLOAT32",
    "int32": "DSO_OP_INT32",
    "int8": "DSO_OP_INT8",
    "uint8": "DSO_OP_UINT8",
    "bfloat16": "DSO_OP_BFLOAT16",
}


class _Arguments:
    """The inputs of a node by their names, and those that a function reads, in order.

    dso.NarrowMatMul and dso.NarrowConv have the same ones.
    """

    NAMES = ("a", "b", "bias", "residual", "added", "scale", "a_zero", "b_zero", "zero")

    def __init__(self, node: ir.Node, factor: ir.Value) -> None:
        values = dict(zip(self.NAMES, (*node.inputs, *[None] * len(self.NAMES)), strict=False))
        values["b"] = factor
        self._values = {name: value for name, value in values.items() if value is not None}
        self.values = list(self._values.values())

    def pointer(self, name: str) -> str:
        """Return the parameter of an input, or an empty text if it was left out."""
        return f"x{list(self._values).index(name)}" if name in self._values else ""

    def data(self, name: str, offset: str) -> str:
        """Return the address of an element of an input."""
        return _element(self._values[name], self.pointer(name), offset)

    def step(self, name: str) -> int:
        """Return 1 if an input has one element for each output, else 0."""
        return int(name in self._values and elements(shape_of(self._values[name])) > 1)


def _element(value: ir.Value, name: str, offset: str) -> str:
    stored = "(const uint16_t *)" if c_type(value) == "void" else ""
    return f"{stored}{name} + {offset}"


def type_in_c(value: ir.Value) -> str:
    """Return the constant of ``enum dso_op_type`` for a value's elements."""
    return _TYPES[dtype_name(value)]


def _rescale(node: ir.Node, given: _Arguments, residual: str) -> str:
    """Return an initialiser of ``struct dso_op_rescale``."""
    fields = [
        f".{field} = {given.pointer(name)}"
        for field, name in (("bias", "added"), ("scale", "scale"), ("zero", "zero"))
        if given.pointer(name)
    ]
    if given.step("scale"):
        fields.append(".scale_step = 1")
    fields.append(f".after = {after_in_c(node, given.pointer('bias'), residual)}")
    return "{" + ", ".join(fields) + "}"


def _zeros(given: _Arguments) -> str:
    """Return initialisers for the zeros of the factors."""
    fields = [
        f".{name} = {given.pointer(name)}," for name in ("a_zero", "b_zero") if given.pointer(name)
    ]
    if given.step("b_zero"):
        fields.append(".b_zero_step = 1,")
    return " ".join(fields)


def narrow_matmul(node: ir.Node) -> Operator:
    """Lower a product of 8-bit integers or bfloat16; a weight on the right is packed."""
    a, b = node.inputs[:2]
    (out,) = node.outputs
    assert a is not None
    assert b is not None
    is_packed = b.const_value is not None
    trans_b = bool(node.attributes.get_int("trans_b", 0))
    size = 2 if dtype_name(a) == "bfloat16" else 1

    def panels(inner: int, columns: int) -> int:
        return need.narrow_panels(inner, columns, size)

    extents = Extents.of(node, panels if is_packed else None)
    given = _Arguments(node, packed_narrow_matmul(b, is_transposed=trans_b) if is_packed else b)
    outside, inside = extents.batches.split()
    residual = f"{given.pointer('residual')} + out" if given.pointer("residual") else ""
    right = f"(const int8_t *){given.pointer('b')} + b" if is_packed else given.data("b", "b")
    body = f"""\
  const struct dso_op_narrow_matmul product = {{
{extents.in_c()}
      .a = {given.data("a", "a")}, .a_type = {type_in_c(a)},
      .b = {right}, .b_type = {type_in_c(b)}, .b_is_packed = {int(is_packed)},
      .out = {_element(out, "y0", "out").replace("const ", "")}, .out_type = {type_in_c(out)},
      {_zeros(given)}
      .after = {_rescale(node, given, residual)},
      .workspace = workspace,
  }};
  if (dso_op_narrow_matmul(&product)) return -1;
"""
    nbytes = need.narrow_matmul_workspace(
        elements(extents.rows), extents.inner, 0 if is_packed else extents.columns, size
    )
    return operator_of(
        "narrow_matmul",
        loops(outside, body) + "  return 0;\n",
        given.values,
        node.outputs,
        workspace=nbytes * elements(inside.extents),
        parts=["narrow_matmul"],
        flops=2 * elements(shape_of(out)) * extents.inner,
    )


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
