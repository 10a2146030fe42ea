"""Nodes with open extents that write elements where indices point to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dtypes import c_type
from ...extent import in_c, product
from ...operator import shape_of
from ..code import count_in_c
from ..one_node import results
from ..refused import refuse
from .movement import index_in_c
from .parts import attribute, given, indices_of, nest, operator, place, refuse_if, strides

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx_ir as ir

    from ...operator import Operator

_REDUCED = {
    "none": "{y} = {x};",
    "add": "{y} = ({type})({y} + {x});",
    "mul": "{y} = ({type})({y} * {x});",
    "max": "if ({x} > {y} || {x} != {x}) {y} = {x};",
    "min": "if ({x} < {y} || {x} != {x}) {y} = {x};",
}


def _reduced(node: ir.Node, y: str, x: str) -> str:
    found = node.attributes.get("reduction")
    kind = "none" if found is None else found.as_string()
    return _REDUCED[kind].format(y=y, x=x, type=c_type(results(node)[0]))


def _copied(node: ir.Node) -> str:
    return f"  memcpy(y0, x0, (size_t)({count_in_c(shape_of(given(node, 0)))}) * sizeof *y0);\n"


def _scatter_elements(node: ir.Node) -> Operator:
    data, indices, updates = (given(node, i) for i in range(3))
    shape, made = shape_of(data), shape_of(indices)
    axis = attribute(node, "axis", 0) % len(shape)
    names = indices_of(len(made))
    inside = [*names[:axis], "k", *names[axis + 1 :]]
    checks = "".join(
        refuse_if(node, f"{in_c(a)} > {in_c(b)}", f"indices of axis {i}", in_c(b), in_c(a))
        for i, (a, b) in enumerate(zip(made, shape, strict=True))
        if i != axis and a != b
    )
    checks += "".join(
        refuse_if(node, f"{in_c(a)} != {in_c(b)}", f"updates of axis {i}", in_c(a), in_c(b))
        for i, (a, b) in enumerate(zip(made, shape_of(updates), strict=True))
        if a != b
    )
    at = place(strides(made), names)
    loop = index_in_c(node, f"x1[{at}]", shape[axis], 0)
    to = f"y0[{place(strides(shape), inside)}]"
    loop += f"    {_reduced(node, to, f'x2[{at}]')}\n"
    return operator(node, checks + _copied(node) + nest(made, loop), [data, indices, updates])


def _scatter_nd(node: ir.Node) -> Operator:
    data, indices, updates = (given(node, i) for i in range(3))
    shape, tuples = shape_of(data), shape_of(indices)
    columns = tuples[-1]
    if not isinstance(columns, int):
        raise refuse(node, "open", "the length of an index")
    wanted = (*tuples[:-1], *shape[columns:])
    body = "".join(
        refuse_if(node, f"{in_c(a)} != {in_c(b)}", f"updates of axis {i}", in_c(a), in_c(b))
        for i, (a, b) in enumerate(zip(wanted, shape_of(updates), strict=True))
        if a != b
    )
    inner, steps = count_in_c(shape[columns:]), strides(shape)
    loop = "    int64_t to = 0;\n"
    for column in range(columns):
        index = index_in_c(node, f"x1[i0 * {columns} + {column}]", shape[column], column)
        loop += f"    {{\n{index}    to += k * {in_c(steps[column])};\n    }}\n"
    write = _reduced(node, "y0[to + i]", f"x2[i0 * ({inner}) + i]")
    loop += f"    for (int64_t i = 0; i < {inner}; i++) {{ {write} }}\n"
    body += _copied(node) + nest((product(tuples[:-1]),), loop)
    return operator(node, body, [data, indices, updates])


def _one_hot(node: ir.Node) -> Operator:
    indices, values, (out,) = given(node, 0), given(node, 2), results(node)
    made = shape_of(out)
    axis = attribute(node, "axis", -1) % len(made)
    depth, names = in_c(made[axis]), indices_of(len(made))
    at = place(strides(shape_of(indices)), [*names[:axis], *names[axis + 1 :]])
    body = (
        f"    int64_t k = (int64_t)x0[{at}];\n    if (k < 0) k += {depth};\n"
        f"    y0[{place(strides(made), names)}] = x1[k == {names[axis]}];\n"
    )
    return operator(node, nest(made, body), [indices, values])


RULES: dict[str, Callable[[ir.Node], Operator]] = {
    "OneHot": _one_hot,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
}
