"""Nodes that make values of open extents: the extents themselves, ranges, constants."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dtypes import c_type
from ...extent import in_c, product
from ...operator import shape_of
from ..code import count_in_c
from ..one_node import results
from ..refused import refuse
from .parts import attribute, given, inputs_of, nest, operator, refuse_if

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx_ir as ir

    from ...operator import Operator


def range_length(node: ir.Node, made: ir.Value, inputs: list[ir.Value]) -> str:
    """Return C that sets `length` to how many numbers a Range has."""
    start, limit, delta = (f"x{inputs.index(given(node, i))}[0]" for i in range(3))
    if c_type(made) in ("float", "double"):
        length = f"(int64_t)ceil(((double){limit} - (double){start}) / (double){delta})"
    else:
        length = (
            f"{delta} < 0 ? ((int64_t){start} - {limit} - {delta} - 1) / -(int64_t){delta}"
            f" : ((int64_t){limit} - {start} + {delta} - 1) / {delta}"
        )
    return (
        f'  if ({delta} == 0) return dso_outside("Range: delta", 1, INT64_MAX, 0);\n'
        f"  int64_t length = {length};\n  if (length < 0) length = 0;\n"
    )


def _range(node: ir.Node) -> Operator:
    (out,) = results(node)
    inputs = list(dict.fromkeys(inputs_of(node)))
    start, _, delta = (f"x{inputs.index(given(node, i))}[0]" for i in range(3))
    type_, count = c_type(out), count_in_c(shape_of(out))
    body = range_length(node, given(node, 0), inputs)
    body += refuse_if(node, f"length != {count}", "elements", count, "length")
    element = f"    y0[i0] = ({type_})({start} + ({type_})i0 * {delta});\n"
    return operator(node, body + nest((product(shape_of(out)),), element), inputs)


def _shape(node: ir.Node) -> Operator:
    shape = shape_of(given(node, 0))
    start, end = attribute(node, "start", 0), attribute(node, "end", len(shape))
    found = shape[slice(start, end)]
    body = "".join(f"  y0[{i}] = {in_c(extent)};\n" for i, extent in enumerate(found))
    return operator(node, body, [])


def _size(node: ir.Node) -> Operator:
    return operator(node, f"  y0[0] = {count_in_c(shape_of(given(node, 0)))};\n", [])


def _constant_of_shape(node: ir.Node) -> Operator:
    (out,) = results(node)
    found = node.attributes.get("value")
    number = 0 if found is None else found.as_tensor().numpy().reshape(-1)[0].item()
    text = f"({c_type(out)}){float(number)!r}" if isinstance(number, float) else repr(int(number))
    if text.endswith(("inf", "nan")):
        raise refuse(node, "open", f"the value {number}")
    return operator(node, nest((product(shape_of(out)),), f"    y0[i0] = {text};\n"), [])


def _eye_like(node: ir.Node) -> Operator:
    shape = shape_of(results(node)[0])
    element = f"    y0[i0 * {in_c(shape[1])} + i1] = i1 - i0 == {attribute(node, 'k', 0)};\n"
    return operator(node, nest(shape, element), [])


RULES: dict[str, Callable[[ir.Node], Operator]] = {
    "ConstantOfShape": _constant_of_shape,
    "EyeLike": _eye_like,
    "Range": _range,
    "Shape": _shape,
    "Size": _size,
}
