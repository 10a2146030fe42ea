"""``dso.Extents``: the numbers that data decides, found before the node whose results have them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from packer.declare.c_text import c_string

from ..extent import Extent, in_c, product
from ..operator import elements, shape_of
from .code import count_in_c, operator_of
from .found_boxes import found_boxes
from .found_elements import found_elements
from .guards import HELPER
from .open.movement import cut_axis
from .open.parts import Numbers, attribute, constants, given, input_of, inputs_of
from .open.values import range_length
from .refused import refuse

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import onnx_ir as ir

    from ..operator import Operator

_SCALE = "Resize: a scale, expected a number over 0 and a result of fewer than 2**31 elements"


def extents(node: ir.Node) -> Operator:
    """Lower a node that finds numbers; the operator defines its symbols."""
    kind = node.attributes.get_string("kind") or ""
    made = _RULES[kind](node)
    return made._replace(defines=tuple(node.attributes.get_strings("symbols") or ()))


def prefix(node: ir.Node) -> Operator:
    """Copy the first entries of an axis."""
    value, out = given(node, 0), node.outputs[0]
    shape, made = shape_of(value), shape_of(out)
    axis = attribute(node, "axis", 0) % len(shape)
    outer, row, part = shape[:axis], count_in_c(shape[axis:]), count_in_c(made[axis:])
    body = (
        f"  for (int64_t i = 0; i < {count_in_c(outer)}; i++)\n"
        f"    memcpy(y0 + i * ({part}), x0 + i * ({row}), (size_t)({part}) * sizeof *y0);\n"
        "  return 0;\n"
    )
    return operator_of("prefix", body, [value], [out])


def _finder(node: ir.Node, body: str, inputs: Sequence[ir.Value]) -> Operator:
    """Make the operator of statements that write the numbers to `y0`."""
    kind = (node.attributes.get_string("kind") or "").lower()
    return operator_of(
        f"extents_of_{kind}",
        f"{body}  return 0;\n",
        inputs,
        node.outputs,
        before=HELPER,
        extents=[*(e for value in inputs_of(node) for e in shape_of(value)), *_known(node)],
    )


def _known(node: ir.Node) -> list[Extent]:
    """Return the extents of the result that the node compares with what it finds."""
    texts = node.attributes.get_strings("axes_of_result") or ()
    return [int(text) if text.isdecimal() else text for text in texts if text != "?"]


def _outside(node: ir.Node, condition: str, what: str, low: str, high: str, found: str) -> str:
    text = f'"{node.attributes.get_string("kind")}: {what}"'
    return f"  if ({condition}) return dso_outside({text}, {low}, {high}, {found});\n"


def _count(value: int, whole: str) -> str:
    return (
        "  int64_t count = 0;\n"
        f"  for (int64_t i = 0; i < {whole}; i++) count += x{value}[i] != 0;\n  y0[0] = count;\n"
    )


def _nonzero(node: ir.Node) -> Operator:
    return _finder(node, _count(0, count_in_c(shape_of(given(node, 0)))), [given(node, 0)])


def _compress(node: ir.Node) -> Operator:
    data, chosen = given(node, 0), given(node, 1)
    shape = shape_of(data)
    length = product(shape)
    if "axis" in node.attributes:
        length = shape[attribute(node, "axis", 0)]
    count = in_c(shape_of(chosen)[0])
    body = _outside(node, f"{count} > {in_c(length)}", "conditions", "0", in_c(length), count)
    return _finder(node, body + _count(0, count), [chosen])


def _slice(node: ir.Node) -> Operator:
    shape, numbers = shape_of(given(node, 0)), Numbers(node, [])
    axes = constants(node, 3) if input_of(node, 3) is not None else None
    if axes is None:
        axes = list(range(elements(shape_of(given(node, 1)))))
    body = ""
    for index, axis in enumerate(axis % len(shape) for axis in axes):
        body += cut_axis(node, numbers, index, axis, shape[axis])
        body += f"  (void)low{axis}, (void)high{axis};\n  y0[{index}] = count{axis};\n"
    return _finder(node, body, numbers.inputs)


def _pad(node: ir.Node) -> Operator:
    shape, numbers = shape_of(given(node, 0)), Numbers(node, [])
    axes = range(len(shape)) if input_of(node, 3) is None else constants(node, 3)
    assert axes is not None
    body = f"  int64_t d[] = {{{_shape_in_c(shape)}}};\n"
    for index, axis in enumerate(axes):
        for pad in (numbers.at(1, index), numbers.at(1, index + len(axes))):
            is_far = f"{pad} < -INT32_MAX || {pad} > INT32_MAX"
            body += _outside(node, is_far, f"a pad of axis {axis}", "-INT32_MAX", "INT32_MAX", pad)
            body += f"  d[{axis % len(shape)}] += {pad};\n"
    return _finder(node, body + _results(node, len(shape)), numbers.inputs)


def _resize(node: ir.Node) -> Operator:
    shape, numbers = shape_of(given(node, 0)), Numbers(node, [])
    scales = input_of(node, 2)
    is_scaled = scales is not None and shape_of(scales) != (0,)
    body = f"  int64_t d[] = {{{_shape_in_c(shape)}}};\n"
    for index, axis in enumerate(attribute(node, "axes", range(len(shape)))):
        axis %= len(shape)
        if not is_scaled:
            body += f"  d[{axis}] = {numbers.at(3, index)};\n"
            continue
        factor = numbers.read(2, index)
        body += (
            f"  const float f{index} = {factor} * (float)d[{axis}];\n"
            f"  if (!({factor} > 0 && f{index} < 0x1p31f))\n"
            f'    return dso_raise("ValueError", {c_string(_SCALE)});\n'
            f"  d[{axis}] = (int64_t)f{index};\n"
        )
    return _finder(node, body + _results(node, len(shape)), numbers.inputs)


def _range(node: ir.Node) -> Operator:
    inputs = list(dict.fromkeys(inputs_of(node)))
    body = range_length(node, given(node, 0), inputs) + "  const int64_t d[] = {length};\n"
    return _finder(node, body + _results(node, 1), inputs)


def _shape_in_c(extents: Sequence[Extent]) -> str:
    return ", ".join(map(in_c, extents)) or "1"


def _wanted(node: ir.Node, index: int) -> tuple[str, int, list[ir.Value]]:
    """Return C that reads a shape to `d`, its length, and the input."""
    value = given(node, index)
    (rank,) = shape_of(value)
    if not isinstance(rank, int):
        raise refuse(node, "open", "a shape of open length")
    body = f"  int64_t d[{max(rank, 1)}] = {{0}};\n"
    body += f"  for (int i = 0; i < {rank}; i++) d[i] = (int64_t)x0[i];\n"
    return body, rank, [value]


def _results(node: ir.Node, rank: int, axes: Sequence[int] | None = None) -> str:
    """Return C that compares what is known of `d` with it, and writes the rest as numbers.

    `d` has these axes; all, if `axes` is None.
    """
    found = _outside(node, "d[i] < 0 || d[i] > INT32_MAX", "an extent", "0", "INT32_MAX", "d[i]")
    body = f"  for (int i = 0; i < {rank}; i++)\n  {found}"
    labels = 0
    for axis, text in enumerate(node.attributes.get_strings("axes_of_result") or ()):
        if axes is not None and axis not in axes:
            continue
        if text == "?":
            body += f"  y0[{labels}] = d[{axis}];\n"
            labels += 1
        else:
            known = in_c(int(text) if text.isdecimal() else text)
            what = f"extent of axis {axis}"
            body += _outside(node, f"d[{axis}] != {known}", what, known, known, f"d[{axis}]")
    return body


def _reshape(node: ir.Node) -> Operator:
    body, rank, inputs = _wanted(node, 1)
    shape = shape_of(given(node, 0))
    whole, zero = count_in_c(shape), attribute(node, "allowzero", 0)
    axes = len(shape)
    body += f"  const int64_t from[] = {{{_shape_in_c(shape)}}};\n" if not zero else ""
    copy = f"    if (d[i] == 0 && i < {axes}) d[i] = from[i];\n" if not zero else ""
    body += (
        "  int64_t product = 1, open = -1;\n"
        f"  for (int i = 0; i < {rank}; i++) {{\n{copy}"
        "    if (d[i] == -1 && open < 0) { open = i; continue; }\n"
        f"  {_outside(node, 'd[i] < 0', 'an extent', '0', 'INT32_MAX', 'd[i]')}"
        "    if (__builtin_mul_overflow(product, d[i], &product)) product = INT64_MAX;\n  }\n"
        "  if (open >= 0) {\n"
        f"    d[open] = product ? ({whole}) / product : 0;\n    product *= d[open];\n  }}\n"
    )
    body += _outside(node, f"product != {whole}", "elements", whole, whole, "product")
    return _finder(node, body + _results(node, rank), inputs)


def _expand(node: ir.Node) -> Operator:
    body, rank, inputs = _wanted(node, 1)
    shape = shape_of(given(node, 0))
    whole = max(rank, len(shape))
    aligned = [*([1] * (whole - len(shape))), *shape]
    inner = f"i < {whole - rank} ? 1 : d[i - {whole - rank}]" if whole > rank else "d[i]"
    differs = "n != from[i] && n != 1 && from[i] != 1"
    check = _outside(node, differs, "an extent", "from[i]", "from[i]", "n")
    body += (
        f"  const int64_t from[] = {{{_shape_in_c(aligned)}}};\n  int64_t to[{max(whole, 1)}];\n"
        f"  for (int i = 0; i < {whole}; i++) {{\n    const int64_t n = {inner};\n"
        f"  {check}"
        "    to[i] = n == 1 ? from[i] : n;\n  }\n"
    )
    return _finder(node, body + _results(node, whole).replace("d[", "to["), inputs)


def _constant(node: ir.Node) -> Operator:
    body, rank, inputs = _wanted(node, 0)
    return _finder(node, body + _results(node, rank), inputs)


def _tile(node: ir.Node) -> Operator:
    body, rank, inputs = _wanted(node, 1)
    body += f"  const int64_t from[] = {{{_shape_in_c(shape_of(given(node, 0)))}}};\n"
    body += (
        f"  for (int i = 0; i < {rank}; i++)\n"
        "    if (__builtin_mul_overflow(d[i], from[i], &d[i])) d[i] = INT64_MAX;\n"
    )
    return _finder(node, body + _results(node, rank), inputs)


def _top(node: ir.Node) -> Operator:
    shape, numbers = shape_of(given(node, 0)), Numbers(node, [])
    extent, k = in_c(shape[attribute(node, "axis", -1)]), numbers.at(1, 0)
    body = _outside(node, f"{k} < 0 || {k} > {extent}", "k", "0", extent, k)
    return _finder(node, f"{body}  y0[0] = {k};\n", numbers.inputs)


def _one_hot(node: ir.Node) -> Operator:
    numbers = Numbers(node, [])
    texts = node.attributes.get_strings("axes_of_result") or ()
    axis = attribute(node, "axis", -1) % len(texts)
    body = f"  int64_t d[{len(texts)}] = {{0}};\n  d[{axis}] = {numbers.at(1, 0)};\n"
    return _finder(node, body + _results(node, len(texts), [axis]), numbers.inputs)


def _split(node: ir.Node) -> Operator:
    shape, numbers = shape_of(given(node, 0)), Numbers(node, [])
    extent, (count,) = in_c(shape[attribute(node, "axis", 0)]), shape_of(given(node, 1))
    body = "  int64_t total = 0;\n"
    for i in range(int(count)):
        body += f"  y0[{i}] = {numbers.at(1, i)};\n"
        body += _outside(
            node, f"y0[{i}] < 0 || y0[{i}] > {extent}", "a part", "0", extent, f"y0[{i}]"
        )
        body += f"  total += y0[{i}];\n"
    body += _outside(node, f"total != {extent}", "elements of all parts", extent, extent, "total")
    return _finder(node, body, numbers.inputs)


_RULES: dict[str, Callable[[ir.Node], Operator]] = {
    "Compress": _compress,
    "ConstantOfShape": _constant,
    "Expand": _expand,
    "NonMaxSuppression": found_boxes,
    "NonZero": _nonzero,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "Resize": _resize,
    "Slice": _slice,
    "Split": _split,
    "Tile": _tile,
    "TopK": _top,
    "Unique": found_elements,
}
