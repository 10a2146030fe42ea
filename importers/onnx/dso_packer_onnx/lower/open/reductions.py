"""Nodes with open extents that combine elements along axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...dtypes import c_type
from ...extent import in_c, product
from ...operator import shape_of
from ..code import count_in_c
from ..one_node import results
from ..refused import refuse
from .parts import attribute, constants, given, indices_of, input_of, nest, operator, place, strides

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx_ir as ir

    from ...operator import Operator

# Start, step and end of a reduction: `v` is an element, `r` the result, `n` their number.
_REDUCTIONS = {
    "ReduceSum": ("0", "r += v", "r"),
    "ReduceMean": ("0", "r += v", "r / n"),
    "ReduceProd": ("1", "r *= v", "r"),
    "ReduceMax": ("", "r = v > r || v != v ? v : r", "r"),
    "ReduceMin": ("", "r = v < r || v != v ? v : r", "r"),
    "ReduceL1": ("0", "r += v < 0 ? -v : v", "r"),
    "ReduceL2": ("0", "r += v * v", "sqrt(r)"),
    "ReduceSumSquare": ("0", "r += v * v", "r"),
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
    value, (out,) = given(node, 0), results(node)
    shape = shape_of(value)
    axes = _axes(node, len(shape))
    start, step, end = _REDUCTIONS[node.op_type]
    is_float = c_type(value) in ("float", "double")
    type_ = "double" if is_float else "int64_t"
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    names = [
        f"i{kept.index(axis)}" if axis in kept else f"j{axes.index(axis)}"
        for axis in range(len(shape))
    ]
    of_axes = strides(shape)
    extents = [shape[axis] for axis in kept]
    count = count_in_c([shape[axis] for axis in axes])
    first = f"x0[{place(of_axes, [n if n[0] == 'i' else '0' for n in names])}]"
    inner = f"    const {type_} v = x0[{place(of_axes, names)}];\n    {step};\n"
    loops = nest([shape[axis] for axis in axes], inner, "j")
    body = (
        f"    const int64_t n = {count};\n    {type_} r = {start or first};\n{loops}"
        f"    (void)n;\n"
        f"    y0[{place(strides(tuple(extents)), indices_of(len(extents)))}] = "
        f"({c_type(out)})({end});\n"
    )
    check = "" if start else f'  if (({count}) == 0) return dso_raise("ValueError", '
    check += "" if start else f'"{node.op_type}: expected an element, found none");\n'
    return operator(node, check + nest(extents, body), [value])


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
    if axes is None:
        raise refuse(node, "open", "a computed axis")
    shape = shape_of(value)
    at = "n - 1 - i" if attribute(node, "reverse", 0) else "i"
    is_exclusive = attribute(node, "exclusive", 0)
    lines = [f"sum += x[({at}) * step];", f"y[({at}) * step] = sum;"]
    if is_exclusive:  # the result may be the input
        type_ = c_type(value)
        lines = [f"const {type_} v = x[({at}) * step];", f"y[({at}) * step] = sum;", "sum += v;"]
    body = f"    {c_type(value)} sum = 0;\n    for (int64_t i = 0; i < n; i++) {{\n"
    body += "".join(f"      {line}\n" for line in lines) + "    }\n"
    return _rows(node, value, axes[0] % len(shape), body)


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
