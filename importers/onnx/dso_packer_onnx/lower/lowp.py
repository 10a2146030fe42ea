"""Products of 8-bit integers and bfloat16, as calls of `packer.operators`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packer.operators import workspace as need

from ..dtypes import c_type, dtype_name
from ..extent import Extent, expression_of, in_c, pads_of, product, written
from ..operator import elements, shape_of
from .batches import Extents, loops, pair
from .code import operator_of
from .epilogue import after_in_c
from .packing import packed_lowp_conv2d, packed_lowp_matmul

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
    """The inputs of a node by their names; `values` are the inputs that a function reads, in order.

    dso.LowpMatMul and dso.LowpConv have the same ones.
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


def lowp_matmul(node: ir.Node) -> Operator:
    """Lower a product of 8-bit integers or bfloat16; a weight on the right is packed."""
    a, b = node.inputs[:2]
    (out,) = node.outputs
    assert a is not None
    assert b is not None
    is_packed = b.const_value is not None
    trans_b = bool(node.attributes.get_int("trans_b", 0))
    size = 2 if dtype_name(a) == "bfloat16" else 1

    def panels(inner: int, columns: int) -> int:
        return need.lowp_panels(inner, columns, size)

    extents = Extents.of(node, panels if is_packed else None)
    given = _Arguments(node, packed_lowp_matmul(b, is_transposed=trans_b) if is_packed else b)
    outside, inside = extents.batches.split()
    residual = f"{given.pointer('residual')} + out" if given.pointer("residual") else ""
    right = f"(const int8_t *){given.pointer('b')} + b" if is_packed else given.data("b", "b")
    body = f"""\
  const struct dso_op_lowp_matmul product = {{
{extents.in_c()}
      .a = {given.data("a", "a")}, .a_type = {type_in_c(a)},
      .b = {right}, .b_type = {type_in_c(b)}, .b_is_packed = {int(is_packed)},
      .out = {_element(out, "y0", "out").replace("const ", "")}, .out_type = {type_in_c(out)},
      {_zeros(given)}
      .after = {_rescale(node, given, residual)},
      .workspace = workspace,
  }};
  if (dso_op_lowp_matmul(&product)) return -1;
"""
    inner, columns = expression_of(extents.inner), expression_of(extents.columns)
    rows = expression_of(product(extents.rows))
    nbytes = written(need.lowp_matmul_workspace(rows, inner, 0 if is_packed else columns, size))
    return operator_of(
        "lowp_matmul",
        loops(outside, body) + "  return 0;\n",
        given.values,
        node.outputs,
        workspace=product((nbytes, *inside.extents)),
        parts=["lowp_matmul"],
        flops=2 * elements((*shape_of(out), extents.inner)),
    )


def lowp_conv2d(node: ir.Node) -> Operator:
    """Lower a convolution of 8-bit integers; its weight is packed."""
    x, weight = node.inputs[:2]
    (out,) = node.outputs
    assert x is not None
    assert weight is not None
    groups = node.attributes.get_int("group", 1)
    given = _Arguments(node, packed_lowp_conv2d(weight, groups=groups))
    kernel = shape_of(weight)[2:]
    batch = shape_of(out)[0]
    nbytes = _conv_workspace(node, x, weight)
    body = f"""\
  const struct dso_op_lowp_conv2d conv = {{
      .batch = {in_c(batch)},
      .in = {{(void *)x0, {", ".join(map(in_c, shape_of(x)[1:]))}, 1}}, .in_type = {type_in_c(x)},
      .out = {{y0, {", ".join(map(in_c, shape_of(out)[1:]))}, 1}}, .out_type = {type_in_c(out)},
      .weight = {given.pointer("b")}, .weight_type = {type_in_c(weight)},
      .groups = {groups},
      .kernel = {pair(kernel)},
      .stride = {pair(_numbers(node, "strides", 1))},
      .dilation = {pair(_numbers(node, "dilations", 1))},
      .pad = {pair(pads_of(node)[:2])},
      {_zeros(given)}
      .after = {_rescale(node, given, given.pointer("residual"))},
      .workspace = workspace,
  }};
  return dso_op_lowp_conv2d(&conv);
"""
    return operator_of(
        "lowp_conv2d",
        body,
        given.values,
        node.outputs,
        workspace=product((nbytes, batch)),
        parts=["lowp_conv2d"],
        extents=pads_of(node),
        flops=2 * elements((*shape_of(out)[2:], *shape_of(weight), batch)),
    )


def _numbers(node: ir.Node, name: str, default: int) -> list[int]:
    found = node.attributes.get_ints(name)
    return list(found) if found is not None else [default] * 4


def _conv_workspace(node: ir.Node, x: ir.Value, weight: ir.Value) -> Extent:
    """Return the bytes of a copy of one image, with what the windows read around it."""
    (out,) = node.outputs
    groups = node.attributes.get_int("group", 1)
    (channels, *extents), (outputs, *results) = shape_of(x)[1:], shape_of(out)[1:]
    assert isinstance(channels, int)
    strides, dilations = (_numbers(node, name, 1) for name in ("strides", "dilations"))
    pads = [expression_of(pad) for pad in pads_of(node)]
    sides = []
    for d, (extent, result, kernel) in enumerate(
        zip(extents, results, shape_of(weight)[2:], strict=True)
    ):
        assert isinstance(kernel, int)
        if isinstance(extent, int) and isinstance(result, int) and isinstance(pads[d], int):
            reach = (result - 1) * strides[d] + (kernel - 1) * dilations[d] + 1
            sides.append(max(extent + pads[d], reach))
        else:
            sides.append(expression_of(extent) + pads[d] + pads[2 + d])
    is_depthwise = groups == channels == outputs and groups > 1
    return written(
        need.lowp_conv2d_workspace(
            channels, *sides, block=1, groups=groups, is_depthwise=is_depthwise
        )
    )
