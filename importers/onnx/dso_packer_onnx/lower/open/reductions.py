"""Nodes with open extents that combine elements along axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...dtypes import c_type
from ...extent import in_c, product
from ...operator import elements, shape_of
from ..code import count_in_c
from ..one_node import results
from ..refused import refuse
from .parts import (
    Numbers,
    attribute,
    constants,
    given,
    indices_of,
    input_of,
    nest,
    operator,
    place,
    strides,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import onnx_ir as ir

    from ...operator import Operator, Shape

_COLUMNS = 2048  # results of one loop
_LANES = 16  # parts of a row, whose results do not wait for each other


class _Reduction(NamedTuple):
    """C of a reduction: `v` is an element, `r` the result so far, `n` the number of elements."""

    start: str  # or nothing: the first element; without one what no element is beyond
    step: str
    end: str = "r"
    join: str = "r += v"  # with the result of another part, `v`


_MOST, _LEAST = "r = v > r || v != v ? v : r", "r = v < r || v != v ? v : r"
_REDUCTIONS = {
    "ReduceSum": _Reduction("0", "r += v"),
    "ReduceMean": _Reduction("0", "r += v", "r / n"),
    "ReduceProd": _Reduction("1", "r *= v", join="r *= v"),
    "ReduceMax": _Reduction("", _MOST, join=_MOST),
    "ReduceMin": _Reduction("", _LEAST, join=_LEAST),
    "ReduceL1": _Reduction("0", "r += v < 0 ? -v : v"),
    "ReduceL2": _Reduction("0", "r += v * v", "sqrt(r)"),
    "ReduceSumSquare": _Reduction("0", "r += v * v"),
}


def _axes(node: ir.Node, rank: int) -> list[int]:
    found = attribute(node, "axes", None)
    if found is None and input_of(node, 1) is not None:
        found = constants(node, 1)
        if found is None:
            raise refuse(node, "open", "computed axes")
    if not found:
        is_noop = attribute(node, "noop_with_empty_axes", 0)
        return [] if is_noop else list(range(rank))
    return sorted(axis % rank for axis in found)


def _reduce(node: ir.Node) -> Operator:
    """Combine rows, or columns: some adjacent results at once, element by element.

    The last axes, all of which are combined or all of which remain, are one row.
    """
    value, (out,) = given(node, 0), results(node)
    shape, how = shape_of(value), _REDUCTIONS[node.op_type]
    axes = _axes(node, len(shape))
    inside = [shape[axis] for axis in axes]
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    is_row = bool(axes) and axes[-1] == len(shape) - 1
    begin = max(kept if is_row else axes, default=-1) + 1  # of the row
    outer = [axis for axis in kept if axis < begin]
    of_axes, of_results = strides(shape), strides(tuple(shape[axis] for axis in kept))
    names = indices_of(len(outer))
    x = place([of_axes[axis] for axis in outer], names)
    y = place(of_results[: len(outer)], names)
    width = count_in_c(shape[begin:])
    before = [axis for axis in axes if axis < begin]
    loops = [in_c(shape[axis]) for axis in before]
    at = place([of_axes[axis] for axis in before], indices_of(len(loops), "j"))
    type_ = "uint64_t" if c_type(value).startswith("uint") else "int64_t"
    if c_type(value) in ("float", "double"):
        type_ = "double" if how.start else c_type(value)
    none = _beyond(c_type(value), node.op_type == "ReduceMin")
    first = f"{'c < lanes ? x[c]' if is_row else 'n ? x[k + c]'} : {none}"
    step = _each("count", f"x[{at} + k + c]", how.step, type_)
    if is_row:
        full = _each(str(_LANES), f"x[{at} + k + c]", how.step, type_)
        step = (
            f"    for (int64_t k = 0; k < {width}; k += {_LANES}) {{\n"
            f"      const int64_t count = {width} - k;\n"
            f"      if (count >= {_LANES}) {full}      else {step}    }}\n"
        )
        lanes = f"n < 1 ? 0 : {width} < {_LANES} ? {width} : {_LANES}"
        body = (
            f"    {type_} all[{_LANES}];\n    const int64_t k = 0, lanes = {lanes};\n    (void)k;\n"
            f"    for (int64_t c = 0; c < {_LANES}; c++) all[c] = "
            f"{how.start or first};\n"
            f"{_loops(loops, step)}    {type_} r = all[0];\n"
            f"    for (int64_t c = 1; c < lanes; c++) {{\n"
            f"      const {type_} v = all[c];\n      {how.join};\n    }}\n"
            f"    y0[{y}] = ({c_type(out)})({how.end});\n"
        )
    else:
        body = (
            f"    for (int64_t k = 0; k < {width}; k += {_COLUMNS}) {{\n"
            f"    const int64_t count = {width} - k < {_COLUMNS} ? {width} - k : {_COLUMNS};\n"
            f"    {type_} all[{_COLUMNS}];\n"
            f"    for (int64_t c = 0; c < count; c++) all[c] = {how.start or first};\n"
            f"{_loops(loops, step)}"
            f"    for (int64_t c = 0; c < count; c++) {{\n      const {type_} r = all[c];\n"
            f"      y0[{y} + k + c] = ({c_type(out)})({how.end});\n    }}\n    }}\n"
        )
    number = f"  const int64_t n = {count_in_c(inside)};\n  (void)n;\n"
    body = f"    const {c_type(value)} *x = x0 + {x};\n{body}"
    return operator(node, number + nest([shape[axis] for axis in outer], body), [value])


def _beyond(type_: str, is_greatest: bool) -> str:
    """Return the result of no element: the end of its type."""
    if type_ in ("float", "double", "_Float16"):
        return "INFINITY" if is_greatest else "-INFINITY"
    if type_ == "bool" or (type_.startswith("u") and not is_greatest):
        return str(int(is_greatest))
    return f"{type_.removesuffix('_t').upper()}_{'MAX' if is_greatest else 'MIN'}"


def _loops(extents: Sequence[str], body: str) -> str:
    return (
        "".join(
            f"    for (int64_t j{i} = 0; j{i} < {extent}; j{i}++)\n"
            for i, extent in enumerate(extents)
        )
        + f"    {{\n{body}    }}\n"
    )


def _each(count: str, element: str, step: str, type_: str) -> str:
    """Take a step for each of some results."""
    return (
        f"for (int64_t c = 0; c < {count}; c++) {{\n        const {type_} v = {element};\n"
        f"        {type_} r = all[c];\n        {step};\n        all[c] = r;\n      }}\n"
    )


def _rows(node: ir.Node, value: ir.Value, axis: int, body: str) -> Operator:
    """Make loops over rows along an axis: `x`, `y` are at the first element, `n` and `step`."""
    shape, type_ = shape_of(value), c_type(value)
    inner, row = count_in_c(shape[axis + 1 :]), count_in_c(shape[axis:])
    text = (
        f"    const int64_t n = {in_c(shape[axis])}, step = {inner};\n"
        f"    const {type_} *x = x0 + i0 * {row} + i1;\n"
        f"    {type_} *y = y0 + i0 * {row} + i1;\n{body}"
    )
    extents = (product(shape[:axis]), product(shape[axis + 1 :]))
    return operator(node, nest(extents, text), [value])


def _softmax(node: ir.Node) -> Operator:
    value = given(node, 0)
    shape, type_ = shape_of(value), c_type(value)
    if type_ not in ("float", "double"):
        raise refuse(node, "dtype", f"value {value.name!r}")
    is_log = node.op_type == "LogSoftmax"
    suffix = "f" if type_ == "float" else ""
    end = f"x[i * step] - most - log{suffix}(sum)" if is_log else "y[i * step] / sum"
    body = (
        f"    {type_} most = n ? x[0] : 0, sum = 0;\n"
        "    for (int64_t i = 1; i < n; i++)\n"
        "      if (x[i * step] > most) most = x[i * step];\n"
        f"    for (int64_t i = 0; i < n; i++) {{\n"
        f"      y[i * step] = exp{suffix}(x[i * step] - most);\n"
        "      sum += y[i * step];\n    }\n"
        f"    for (int64_t i = 0; i < n; i++) y[i * step] = {end};\n"
    )
    return _rows(node, value, attribute(node, "axis", -1) % len(shape), body)


def _cum_sum(node: ir.Node) -> Operator:
    value, axes = given(node, 0), constants(node, 1)
    shape, type_ = shape_of(value), c_type(value)
    numbers, find = Numbers(node, [value]), ""
    if axes is None:
        if elements(shape_of(given(node, 1))) != 1:
            raise refuse(node, "open", "an axis that is not one number")
        find = _found_axis(node, shape, numbers.at(1, 0))
        outer, rows, width = "outer", "rows", "width"
    else:
        axis = axes[0] % len(shape)
        outer, rows, width = map(
            in_c, (product(shape[:axis]), shape[axis], product(shape[axis + 1 :]))
        )
    row = f"({rows} - 1 - i)" if attribute(node, "reverse", 0) else "i"
    lines = ["sum[c] += v;", "y[c] = sum[c];"]
    if attribute(node, "exclusive", 0):
        lines = ["y[c] = sum[c];", "sum[c] += v;"]
    body = (
        f"    const int64_t count = {width} - i1 < {_COLUMNS} ? {width} - i1 : {_COLUMNS};\n"
        f"    {type_} sum[{_COLUMNS}];\n"
        "    for (int64_t c = 0; c < count; c++) sum[c] = 0;\n"
        f"    for (int64_t i = 0; i < {rows}; i++) {{\n"
        f"      const {type_} *x = x0 + (i0 * {rows} + {row}) * {width} + i1;\n"
        f"      {type_} *y = y0 + (i0 * {rows} + {row}) * {width} + i1;\n"
        f"      for (int64_t c = 0; c < count; c++) {{\n"
        f"        const {type_} v = x[c]; /* the result may be the input */\n"
        f"        {lines[0]}\n        {lines[1]}\n      }}\n    }}\n"
    )
    loops = (
        f"  for (int64_t i0 = 0; i0 < {outer}; i0++)\n"
        f"  for (int64_t i1 = 0; i1 < {width}; i1 += {_COLUMNS}) {{\n{body}  }}\n"
    )
    return operator(node, find + loops, numbers.inputs)


def _found_axis(node: ir.Node, shape: Shape, axis: str) -> str:
    """Return C that sets `rows` to the extent of an axis, `outer` and `width` to its neighbours."""
    rank = len(shape)
    return (
        f"  const int64_t extents[] = {{{', '.join(map(in_c, shape))}}};\n"
        f"  int64_t axis = {axis}, outer = 1, width = 1;\n"
        f"  if (axis < -{rank} || axis >= {rank})\n"
        f'    return dso_outside("{node.op_type}: axis", -{rank}, {rank - 1}, axis);\n'
        f"  if (axis < 0) axis += {rank};\n"
        "  for (int64_t i = 0; i < axis; i++) outer *= extents[i];\n"
        f"  for (int64_t i = axis + 1; i < {rank}; i++) width *= extents[i];\n"
        "  const int64_t rows = extents[axis];\n"
    )


def _arg(node: ir.Node) -> Operator:
    value = given(node, 0)
    shape = shape_of(value)
    axis = attribute(node, "axis", 0) % len(shape)
    sign = ">" if node.op_type == "ArgMax" else "<"
    sign += "=" if attribute(node, "select_last_index", 0) else ""
    inner = count_in_c(shape[axis + 1 :])
    text = (
        f"    const {c_type(value)} *x = x0 + i0 * ({in_c(shape[axis])}) * {inner} + i1;\n"
        "    int64_t best = 0;\n"
        f"    for (int64_t i = 1; i < {in_c(shape[axis])}; i++)\n"
        f"      if (x[i * {inner}] {sign} x[best * {inner}]) best = i;\n"
        f"    y0[i0 * {inner} + i1] = best;\n"
    )
    check = f'  if (({in_c(shape[axis])}) == 0) return dso_raise("ValueError", '
    check += f'"{node.op_type}: expected an element, found none");\n'
    extents = (product(shape[:axis]), product(shape[axis + 1 :]))
    return operator(node, check + nest(extents, text), [value])


RULES: dict[str, Callable[[ir.Node], Operator]] = {
    **dict.fromkeys(_REDUCTIONS, _reduce),
    "ArgMax": _arg,
    "ArgMin": _arg,
    "CumSum": _cum_sum,
    "LogSoftmax": _softmax,
    "Softmax": _softmax,
}
