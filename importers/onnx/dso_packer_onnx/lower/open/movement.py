"""Nodes with open extents that move elements: to another order, or by indices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dtypes import c_type
from ...extent import Extent, in_c, product
from ...operator import elements, shape_of
from ..code import copy_in_c, count_in_c, squares_in_c
from ..one_node import results
from ..refused import refuse
from .parts import (
    Numbers,
    attribute,
    broadcast,
    constants,
    given,
    indices_of,
    input_of,
    inputs_of,
    merged,
    nest,
    operator,
    place,
    refuse_if,
    strides,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import onnx_ir as ir

    from ...operator import Operator


_FEW = 8  # columns that are written together, row after row


def _moved(node: ir.Node, steps: Sequence[Extent]) -> Operator:
    """Copy elements of the first input, by their distances along the axes of the result."""
    (out,) = results(node)
    extents, (source, made) = merged(shape_of(out), [steps, strides(shape_of(out))])
    names = indices_of(len(extents))
    body = f"    y0[{place(made, names)}] = x0[{place(source, names)}];\n"
    return operator(node, nest(extents, body), [given(node, 0)])


def _transpose(node: ir.Node) -> Operator:
    """Copy rows, or squares of two axes whose elements are adjacent before and after."""
    axes = _merged_axes(node)
    (out,) = results(node)
    after = strides(tuple(extent for extent, _ in axes))
    last = len(axes) - 1
    first = next((i for i, (_, step) in enumerate(axes) if step == 1), last)
    step, apart = in_c(after[first]), in_c(axes[last][1])
    if first == last:
        text = f"    {copy_in_c('y', 'x', axes[last][0])}\n"
    elif isinstance(count := axes[last][0], int) and count <= _FEW:
        writes = "".join(f" y[i * {step} + {k}] = x[{k} * {apart} + i];" for k in range(count))
        text = f"    for (int64_t i = 0; i < {in_c(axes[first][0])}; i++) {{{writes} }}\n"
    else:
        text = squares_in_c(in_c(axes[first][0]), in_c(axes[last][0]), step, apart)
    outer = [i for i in range(last) if i != first]
    names = [f"a{number}" for number in range(len(outer))]
    type_ = c_type(out)
    body = (
        f"    const {type_} *x = x0 + {place([axes[i][1] for i in outer], names)};\n"
        f"    {type_} *y = y0 + {place([after[i] for i in outer], names)};\n{text}"
    )
    return operator(node, nest([axes[i][0] for i in outer], body, "a"), [given(node, 0)])


def _merged_axes(node: ir.Node) -> list[tuple[Extent, Extent]]:
    """Return the extent and the distance in the input of each axis of a Transpose's result.

    Axes that remain adjacent are one axis; an axis of extent 1 is left out.
    """
    shape = shape_of(given(node, 0))
    steps = strides(shape)
    axes: list[tuple[Extent, Extent]] = []
    for axis in attribute(node, "perm", list(range(len(shape)))[::-1]):
        extent, step = shape[axis], steps[axis]
        if extent == 1:
            continue
        if axes and axes[-1][1] == product((extent, step)):
            axes[-1] = product((axes[-1][0], extent)), step
        else:
            axes.append((extent, step))
    return axes or [(1, 1)]


def _expand(node: ir.Node) -> Operator:
    rank = len(shape_of(results(node)[0]))
    return _moved(node, broadcast(shape_of(given(node, 0)), rank))


def _tile(node: ir.Node) -> Operator:
    """Copy rows: the last axes that are not repeated, and one before them."""
    value, (out,) = given(node, 0), results(node)
    shape, made = shape_of(value), shape_of(out)
    whole = next((i for i in range(len(shape)) if shape[i:] == made[i:]), len(shape))
    first = max(whole - 1, 0)
    names = indices_of(first)
    inside = [f"({n} % ({in_c(extent)}))" for n, extent in zip(names, shape, strict=False)]
    row = product(shape[first:])
    body = (
        f"    const {c_type(out)} *x = x0 + {place(strides(shape)[:first], inside)};\n"
        f"    {c_type(out)} *y = y0 + {place(strides(made)[:first], names)};\n"
        f"    for (int64_t k = 0; k < {count_in_c(made[first:])}; k += {in_c(row)})\n"
        f"      {copy_in_c('y + k', 'x', row)}\n"
    )
    return operator(node, nest(made[:first], body), [value])


def _concat(node: ir.Node) -> Operator:
    (out,) = results(node)
    whole, inputs = shape_of(out), inputs_of(node)
    axis = attribute(node, "axis", 0) % len(whole)
    outer, row = count_in_c(whole[:axis]), count_in_c(whole[axis:])
    body = "  int64_t at = 0;\n"
    for index, value in enumerate(inputs):
        part = product(shape_of(value)[axis:])
        copy = copy_in_c(f"y0 + i * {row} + at", f"x{index} + i * {in_c(part)}", part)
        body += f"  for (int64_t i = 0; i < {outer}; i++) {copy}\n  at += {in_c(part)};\n"
    total = " + ".join(count_in_c(shape_of(value)[axis:]) for value in inputs)
    check = refuse_if(node, f"{total} != {row}", "elements of a row", row, total)
    return operator(node, check + body, inputs)


def _split(node: ir.Node) -> Operator:
    value, outputs = given(node, 0), results(node)
    shape = shape_of(value)
    axis = attribute(node, "axis", 0) % len(shape)
    outer, row = count_in_c(shape[:axis]), count_in_c(shape[axis:])
    parts = [product(shape_of(part)[axis:]) for part in outputs]
    total = " + ".join(map(in_c, parts))
    body = refuse_if(node, f"{total} > {row}", "elements of a row", row, total)
    body += "  int64_t at = 0;\n"
    for index, part in enumerate(parts):
        copy = copy_in_c(f"y{index} + i * {in_c(part)}", f"x0 + i * {row} + at", part)
        body += f"  for (int64_t i = 0; i < {outer}; i++) {copy}\n  at += {in_c(part)};\n"
    return operator(node, body, [value])


def cut_axis(node: ir.Node, numbers: Numbers, index: int, axis: int, extent: Extent) -> str:
    """Return C that finds where a Slice begins on an axis, its step, and how many it takes."""
    step = "INT64_C(1)" if input_of(node, 4) is None else numbers.at(4, index)
    low = f"step{axis} < 0 ? -1 : 0"
    high = f"step{axis} < 0 ? extent{axis} - 1 : extent{axis}"
    body = (
        f"  const int64_t extent{axis} = {in_c(extent)}, step{axis} = {step};\n"
        f"  if (step{axis} == 0 || step{axis} == INT64_MIN)\n"
        f'    return dso_outside("Slice: step", 1, INT64_MAX, step{axis});\n'
        f"  const int64_t low{axis} = {low}, high{axis} = {high};\n"
        f"  int64_t a{axis} = {numbers.at(1, index)}, b{axis} = {numbers.at(2, index)};\n"
    )
    for end in (f"a{axis}", f"b{axis}"):
        body += (
            f"  if ({end} < 0) {end} += extent{axis};\n"
            f"  if ({end} < low{axis}) {end} = low{axis};\n"
            f"  if ({end} > high{axis}) {end} = high{axis};\n"
        )
    body += (
        f"  int64_t count{axis} = step{axis} < 0 ? a{axis} - b{axis} : b{axis} - a{axis};\n"
        f"  count{axis} = count{axis} <= 0 ? 0 : (count{axis} - 1) / "
        f"(step{axis} < 0 ? -step{axis} : step{axis}) + 1;\n"
    )
    return body


def _slice(node: ir.Node) -> Operator:
    value, (out,) = given(node, 0), results(node)
    shape, made = shape_of(value), shape_of(out)
    numbers = Numbers(node, [value])
    count = elements(shape_of(given(node, 1)))
    axes = list(range(count)) if input_of(node, 3) is None else constants(node, 3)
    if axes is None:
        raise refuse(node, "open", "computed axes")
    steps, of_axes, body = ["1"] * len(shape), strides(shape), ""
    starts = ["0"] * len(shape)
    for index, axis in enumerate(axis % len(shape) for axis in axes):
        body += cut_axis(node, numbers, index, axis, shape[axis])
        expected = in_c(made[axis])
        body += refuse_if(
            node, f"count{axis} != {expected}", f"elements of axis {axis}", expected, f"count{axis}"
        )
        steps[axis], starts[axis] = f"step{axis}", f"a{axis}"
    names = indices_of(len(made))
    inside = [
        name if step == "1" else f"({start} + {name} * {step})"
        for name, step, start in zip(names, steps, starts, strict=True)
    ]
    copy = f"    y0[{place(strides(made), names)}] = x0[{place(of_axes, inside)}];\n"
    return operator(node, body + nest(made, copy), numbers.inputs)


def index_in_c(node: ir.Node, text: str, extent: Extent, column: int) -> str:
    """Return statements that set `k` to an index, which may count from the end."""
    end, what = in_c(extent), f"index {column} of input 1"
    return (
        f"    int64_t k = (int64_t){text};\n"
        f"    if (k < -({end}) || k >= {end})\n"
        f'      return dso_outside("{node.op_type}: {what}", -({end}), {end} - 1, k);\n'
        f"    if (k < 0) k += {end};\n"
    )


def _gather(node: ir.Node) -> Operator:
    data, indices = given(node, 0), given(node, 1)
    shape = shape_of(data)
    axis = attribute(node, "axis", 0) % len(shape)
    row, count = product(shape[axis + 1 :]), count_in_c(shape_of(indices))
    to, source = (
        f"{name} * {in_c(row)}"
        for name in (f"y0 + (i0 * {count} + i1)", f"x0 + (i0 * {in_c(shape[axis])} + k)")
    )
    body = index_in_c(node, "x1[i1]", shape[axis], 0) + f"    {copy_in_c(to, source, row)}\n"
    extents = (product(shape[:axis]), product(shape_of(indices)))
    return operator(node, nest(extents, body), [data, indices])


def _gather_elements(node: ir.Node) -> Operator:
    data, indices = given(node, 0), given(node, 1)
    shape, made = shape_of(data), shape_of(indices)
    axis = attribute(node, "axis", 0) % len(shape)
    names = indices_of(len(made))
    at = place(strides(made), names)
    inside = [*names[:axis], "k", *names[axis + 1 :]]
    body = "".join(
        refuse_if(
            node,
            f"{in_c(made[other])} > {in_c(shape[other])}",
            f"indices of axis {other}",
            in_c(shape[other]),
            in_c(made[other]),
        )
        for other in range(len(shape))
        if other != axis and made[other] != shape[other]
    )
    loop = index_in_c(node, f"x1[{at}]", shape[axis], 0)
    loop += f"    y0[{at}] = x0[{place(strides(shape), inside)}];\n"
    return operator(node, body + nest(made, loop), [data, indices])


def _gather_nd(node: ir.Node) -> Operator:
    data, indices = given(node, 0), given(node, 1)
    shape, tuples = shape_of(data), shape_of(indices)
    first, columns = attribute(node, "batch_dims", 0), tuples[-1]
    if not isinstance(columns, int):
        raise refuse(node, "open", "the length of an index")
    row = product(shape[first + columns :])
    steps = strides(shape)
    body = "    int64_t from = 0;\n"
    if first:
        entry = f"i0 / ({count_in_c(tuples[first:-1])})"
        body = f"    int64_t from = {entry} * {count_in_c(shape[first:])};\n"
    for column in range(columns):
        extent, step = shape[first + column], in_c(steps[first + column])
        index = index_in_c(node, f"x1[i0 * {columns} + {column}]", extent, column)
        body += f"    {{\n{index}    from += k * {step};\n    }}\n"
    body += f"    {copy_in_c(f'y0 + i0 * {in_c(row)}', 'x0 + from', row)}\n"
    return operator(node, nest((product(tuples[:-1]),), body), [data, indices])


def _trilu(node: ir.Node) -> Operator:
    value, (out,) = given(node, 0), results(node)
    numbers = Numbers(node, [value])
    diagonal = "0" if input_of(node, 1) is None else numbers.at(1, 0)
    sign = ">=" if attribute(node, "upper", 1) else "<="
    shape, names = shape_of(out), indices_of(len(shape_of(out)))
    at = place(strides(shape), names)
    body = f"    y0[{at}] = {names[-1]} - {names[-2]} {sign} {diagonal} ? x0[{at}] : 0;\n"
    return operator(node, nest(shape, body), numbers.inputs)


RULES: dict[str, Callable[[ir.Node], Operator]] = {
    "Concat": _concat,
    "Expand": _expand,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "Slice": _slice,
    "Split": _split,
    "Tile": _tile,
    "Transpose": _transpose,
    "Trilu": _trilu,
}
