"""Convolutions, pools and pads with open extents, of any number of dimensions: plain loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ...dtypes import c_type
from ...extent import Extent, identifier, in_c, pads_of, parameter, symbols_of, total
from ...operator import shape_of
from ..one_node import results
from ..refused import refuse
from .parts import (
    Numbers,
    attribute,
    constants,
    given,
    indices_of,
    input_of,
    inputs_of,
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


class _Window(NamedTuple):
    """How a window moves over the axes after the first two."""

    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[int]  # before the first element of each axis

    @classmethod
    def of(cls, node: ir.Node, kernel: list[int]) -> _Window:
        rank = len(kernel)
        if attribute(node, "auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
            raise refuse(node, "open", "auto_pad")
        ones = [1] * rank
        pads = list(attribute(node, "pads", [0] * 2 * rank))[:rank]
        steps, dilations = (list(attribute(node, name, ones)) for name in ("strides", "dilations"))
        return cls(kernel, steps, dilations, pads)

    def places(self, shape: tuple[Extent, ...]) -> tuple[str, str]:
        """Return statements that set p0, p1, ... to a place of the input, and the test for it."""
        lines, tests = "", []
        for axis, extent in enumerate(shape):
            step, dilation, pad = self.strides[axis], self.dilations[axis], self.pads[axis]
            at = f"i{axis + 2} * {step} + j{axis} * {dilation} - {pad}"
            lines += f"    const int64_t p{axis} = {at};\n"
            tests.append(f"p{axis} >= 0 && p{axis} < {in_c(extent)}")
        return lines, " && ".join(tests)


def _conv(node: ir.Node) -> Operator:
    x, weight, bias = given(node, 0), given(node, 1), input_of(node, 2)
    (out,) = results(node)
    shape, of_weight, made = shape_of(x), shape_of(weight), shape_of(out)
    if not all(isinstance(extent, int) for extent in of_weight) or not isinstance(shape[1], int):
        raise refuse(node, "open", "the extents of its weight")
    outputs, channels, *kernel = (int(extent) for extent in of_weight)
    groups = attribute(node, "group", 1)
    window = _Window.of(node, kernel)
    lines, test = window.places(shape[2:])
    type_ = c_type(out)
    names = indices_of(len(made))
    source = ["i0", "c", *(f"p{axis}" for axis in range(len(kernel)))]
    factor = ["i1", "k", *(f"j{axis}" for axis in range(len(kernel)))]
    first = f"i1 / {outputs // groups} * {channels}"
    a, b = place(strides(shape), source), place(strides(of_weight), factor)
    inner = (
        f"{lines}    if (!({test})) continue;\n"
        f"    for (int64_t k = 0, c = {first}; k < {channels}; k++, c++)\n"
        f"      sum += x0[{a}] * x1[{b}];\n"
    )
    body = (
        f"    {type_} sum = {'x2[i1]' if bias is not None else '0'};\n{nest(kernel, inner, 'j')}"
        f"    y0[{place(strides(made), names)}] = sum;\n"
    )
    inputs = [v for v in (x, weight, bias) if v is not None]
    return operator(node, nest(made, body), inputs)._replace(is_plain=True)


def _pool(node: ir.Node) -> Operator:
    x, (out, *chosen) = given(node, 0), results(node)
    shape, made = shape_of(x), shape_of(out)
    kernel = list(attribute(node, "kernel_shape", []))
    window = _Window.of(node, kernel)
    lines, test = window.places(shape[2:])
    is_counted = attribute(node, "count_include_pad", 0)
    for name in ("ceil_mode",) * is_counted + ("storage_order",) * bool(chosen):
        if attribute(node, name, 0):
            raise refuse(node, "open", name)
    type_ = c_type(out)
    source = place(strides(shape), ["i0", "i1", *(f"p{axis}" for axis in range(len(kernel)))])
    is_max = node.op_type == "MaxPool"
    chosen_at = f", at = {source}" if chosen else ""
    step = f"if (!n++ || v > r || v != v) r = v{chosen_at};" if is_max else "r += v, n++;"
    inner = (
        f"{lines}    if (!({test})) continue;\n    const {type_} v = x0[{source}];\n    {step}\n"
    )
    count = 1
    for extent in kernel:
        count *= extent
    whole = str(count) if is_counted else "n"
    end = "r" if is_max else f"r / {whole}"
    target = place(strides(made), indices_of(len(made)))
    body = (
        f"    {type_} r = 0;\n    int64_t n = 0{', at = 0' if chosen else ''};\n"
        f"{nest(kernel, inner, 'j')}    y0[{target}] = {end};\n"
    )
    body += f"    y1[{target}] = at;\n" if chosen else ""
    return operator(node, nest(made, body), [x])._replace(is_plain=True)


def _pad(node: ir.Node) -> Operator:
    shape, pads, axes = shape_of(given(node, 0)), constants(node, 1), constants(node, 3)
    if not shape or (axes is None and input_of(node, 3) is not None):
        raise refuse(node, "open", "computed axes" if shape else "a scalar")
    mode = str(attribute(node, "mode", "constant"))
    if mode != "constant" and (mode not in _INSIDE or min(pads or (), default=0) < 0):
        raise refuse(node, "open", f"mode {mode!r}, or negative pads")
    axes = list(range(len(shape))) if axes is None else [axis % len(shape) for axis in axes]
    value = input_of(node, 2) if mode == "constant" else None
    numbers = Numbers(node, [given(node, 0), *([] if value is None else [value])])
    found: Sequence[Extent] = pads or ()
    sets = ""
    if pads is None:
        found, sets = _pads_in_c(node, numbers, 2 * len(axes), is_signed=mode == "constant")
    before: list[Extent] = [0] * len(shape)
    after = [*before]
    for index, axis in enumerate(axes):
        before[axis], after[axis] = found[index], found[index + len(axes)]
    fill = "0" if value is None else "x1[0]"
    return padded(node, before, after, numbers.inputs, fill, _INSIDE.get(mode, ""), sets)


def _pads_in_c(
    node: ir.Node, numbers: Numbers, count: int, *, is_signed: bool
) -> tuple[list[Extent], str]:
    """Return names for pads that data decides, and C that reads them to variables."""
    taken = symbols_of([*shape_of(given(node, 0)), *shape_of(results(node)[0])])
    names, text = [identifier(f"pad{index}", taken) for index in range(count)], ""
    for index, pad in enumerate(map(parameter, names)):
        text += f"  const int64_t {pad} = {numbers.at(1, index)};\n"
        if not is_signed:
            outside = f'dso_outside("Pad: a pad", 0, INT32_MAX, {pad})'
            text += f"  if ({pad} < 0) return {outside};\n"
    return [*names], text


# For each mode of Pad the place in an axis of n elements that an element k of the result has.
_INSIDE = {
    "edge": "n_min(n_max({k}, 0), {n} - 1)",
    "wrap": "(({k}) % ({n}) + {n}) % ({n})",
    "reflect": "n_min(n_max({k}, -{k}) % n_max(2 * ({n}) - 2, 1), "
    "2 * ({n}) - 2 - n_max({k}, -{k}) % n_max(2 * ({n}) - 2, 1))",
}


def computed_pad(node: ir.Node) -> Operator:
    """Lower dso.Pad, whose pads are expressions."""
    pads = pads_of(node)
    half = len(pads) // 2
    inputs = inputs_of(node)
    return padded(node, pads[:half], pads[half:], inputs, "x1[0]" if len(inputs) > 1 else "0")


def _axes_of(
    node: ir.Node, before: Sequence[Extent], after: Sequence[Extent], inside: str
) -> tuple[str, list[str], list[str]]:
    """Return checks of extents, conditions of a row, and the place in each axis of the input."""
    shape, made = shape_of(given(node, 0)), shape_of(results(node)[0])
    checks, tests, source = "", ["1"], []
    for axis, extent in enumerate(shape):
        wanted = in_c(total([extent, before[axis], after[axis]]))
        checks += refuse_if(
            node,
            f"{in_c(made[axis])} != {wanted}",
            f"elements of axis {axis}",
            wanted,
            in_c(made[axis]),
        )
        source.append(f"(i{axis} - {in_c(before[axis])})" if before[axis] else f"i{axis}")
        if not before[axis] and not after[axis]:
            continue
        if inside:
            size = in_c(extent)
            outside = f'dso_outside("Pad: elements of axis {axis}", 1, INT64_MAX, {size})'
            checks += f"  if ({size} < 1) return {outside};\n"
            source[-1] = f"({inside.format(k=source[-1], n=size)})"
        elif axis < len(shape) - 1:
            tests.append(f"{source[-1]} >= 0 && {source[-1]} < {in_c(extent)}")
    return checks, tests, source


def padded(
    node: ir.Node,
    before: Sequence[Extent],
    after: Sequence[Extent],
    inputs: Sequence[ir.Value],
    fill: str,
    inside: str = "",
    sets: str = "",
) -> Operator:
    """Copy rows into an output with pads, which may be negative.

    `fill` is the element of the pads, if it is not at the place `inside`. The C text `sets`
    declares the symbols of the pads, if data decides them.
    """
    x, (out,) = given(node, 0), results(node)
    shape, made = shape_of(x), shape_of(out)
    checks, tests, source = _axes_of(node, before, after, inside)
    first = [in_c(pad) for pad in before]
    last, type_ = len(shape) - 1, c_type(x)
    extent, row = in_c(shape[last]), in_c(made[last])
    from_row = f"x0 + {place(strides(shape)[:last], source[:last])}"
    if inside:
        fill = f"({from_row})[{inside.format(k=f'(c - {first[last]})', n=extent)}]"
    low, high = f"n_max({first[last]}, 0)", f"{extent} + {first[last]}"
    body = (
        f"    {type_} *y = y0 + {place(strides(made)[:last], indices_of(last))};\n"
        f"    int64_t begin = {row}, end = {row};\n"
        f"    if ({' && '.join(tests)}) {{\n"
        f"      begin = {low} < {row} ? {low} : {row};\n"
        f"      end = {high} < {row} ? {high} : {row};\n"
        f"      if (end < begin) end = begin;\n"
        f"      const {type_} *x = {from_row};\n"
        f"      memcpy(y + begin, x + begin - {first[last]},"
        f" (size_t)(end - begin) * sizeof *y);\n"
        f"    }}\n"
        f"    for (int64_t c = 0; c < begin; c++) y[c] = {fill};\n"
        f"    for (int64_t c = end; c < {row}; c++) y[c] = {fill};\n"
    )
    extents = () if sets else (*before, *after)
    return operator(node, sets + checks + nest(made[:last], body), inputs, extents)


RULES: dict[str, Callable[[ir.Node], Operator]] = {
    "AveragePool": _pool,
    "Conv": _conv,
    "MaxPool": _pool,
    "Pad": _pad,
}
