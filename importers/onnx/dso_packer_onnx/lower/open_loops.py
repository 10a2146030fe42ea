"""Nodes with open extents as plain loops: every extent is an expression of the parameters.

One function for each kind of node makes its C: loops over the elements of the result, and for each
tensor the distance to the next element along each loop. Values that decide places (indices, the
ends of a Slice) are compared with the declared extents before memory is touched. One file: the rows
of `_RULES` share the parts above them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import c_type
from ..extent import Extent, in_c, product
from ..operator import Operator, elements, shape_of
from .code import count_in_c, operator_of
from .guards import HELPER
from .one_node import results
from .refused import refuse
from .scalar import scalar_in_c

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import onnx_ir as ir

    from ..operator import Shape

_TYPES = {
    *("bool", "float", "double"),
    *(f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)),
}
_VIEWS = ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Identity")


def has_open_loops(node: ir.Node) -> bool:
    """Return True if a kind of node has loops here."""
    return _rule(node) is not None


def lower_open(node: ir.Node) -> Operator:
    """Make the C function of a node with open extents, whose kind has loops here.

    Raises OperatorRefusedError if there are none for its data types or attributes.
    """
    for value in (*node.inputs, *results(node)):
        if value is not None and c_type(value) not in _TYPES:
            raise refuse(node, "dtype", f"value {value.name!r}")
    rule = _rule(node)
    assert rule is not None
    return rule(node)


def _rule(node: ir.Node) -> Callable[[ir.Node], Operator] | None:
    if node.domain not in ("", "ai.onnx"):
        return None
    if node.op_type in _RULES:
        return _RULES[node.op_type]
    return _elementwise if scalar_in_c(node, ["0"] * 8) else None


# ---- Parts of the code


def _strides(shape: Shape) -> list[Extent]:
    """Return the distance to the next element along each axis of an array in C order."""
    return [product(shape[axis + 1 :]) for axis in range(len(shape))]


def _broadcast(shape: Shape, rank: int) -> list[Extent]:
    """Return the distances along the axes of a result that an array is broadcast to."""
    steps: list[Extent] = [
        0 if extent == 1 else step for extent, step in zip(shape, _strides(shape), strict=True)
    ]
    return [0] * (rank - len(shape)) + steps


def _place(steps: Sequence[Extent], names: Sequence[str]) -> str:
    terms = [
        name if step == 1 else f"{name} * {in_c(step)}"
        for name, step in zip(names, steps, strict=True)
        if step != 0
    ]
    return " + ".join(terms) or "0"


def _indices(rank: int, letter: str = "i") -> list[str]:
    return [f"{letter}{axis}" for axis in range(rank)]


def _nest(extents: Sequence[Extent], body: str, letter: str = "i") -> str:
    """Put loops around statements."""
    opened = "".join(
        f"  for (int64_t {letter}{axis} = 0; {letter}{axis} < {in_c(extent)}; {letter}{axis}++)\n"
        for axis, extent in enumerate(extents)
    )
    return f"{opened}  {{\n{body}  }}\n"


def _operator(node: ir.Node, body: str, inputs: Sequence[ir.Value]) -> Operator:
    """Make the operator of statements; they return -1 after an error."""
    outputs = results(node)
    return operator_of(
        node.op_type.lower(),
        f"{body}  return 0;\n",
        inputs,
        outputs,
        flops=sum(elements(shape_of(value)) for value in outputs),
        before=HELPER,
        extents=[extent for value in _inputs(node) for extent in shape_of(value)],
    )


def _refuse_unless(node: ir.Node, condition: str, what: str, expected: str, found: str) -> str:
    text = f'"{node.op_type}: {what}"'
    return f"  if ({condition}) return dso_outside({text}, {expected}, {expected}, {found});\n"


def _inputs(node: ir.Node) -> list[ir.Value]:
    return [value for value in node.inputs if value is not None and value.name]


def _input(node: ir.Node, index: int) -> ir.Value | None:
    value = node.inputs[index] if index < len(node.inputs) else None
    return value if value is not None and value.name else None


def _given(node: ir.Node, index: int) -> ir.Value:
    value = _input(node, index)
    assert value is not None
    return value


def _attribute(node: ir.Node, name: str, default: Any) -> Any:
    found = node.attributes.get(name)
    return default if found is None else found.value


def _constants(node: ir.Node, index: int) -> list[int] | None:
    """Return the whole numbers of a constant input; None if it is computed, or not there."""
    value = _input(node, index)
    if value is None or value.const_value is None:
        return None
    return [int(number) for number in value.const_value.numpy().reshape(-1)]


class _Numbers:
    """Whole numbers that a node gets as inputs: literals, or elements of parameters."""

    def __init__(self, node: ir.Node, data: Sequence[ir.Value]) -> None:
        self._node = node
        self.inputs = [*data]

    def at(self, index: int, element: int) -> str:
        """Return an element of an input as C."""
        known = _constants(self._node, index)
        if known is not None:
            return f"INT64_C({max(known[element], -(1 << 63) + 1)})"
        value = _given(self._node, index)
        if value not in self.inputs:
            self.inputs.append(value)
        return f"(int64_t)x{self.inputs.index(value)}[{element}]"


# ---- Elements


def _elementwise(node: ir.Node) -> Operator:
    (out,) = results(node)
    shape, inputs = shape_of(out), list(dict.fromkeys(_inputs(node)))
    names = _indices(len(shape))
    places = {
        value: f"x{i}[{_place(_broadcast(shape_of(value), len(shape)), names)}]"
        for i, value in enumerate(inputs)
    }
    given = ["" if v is None or not v.name else places[v] for v in node.inputs]
    code = scalar_in_c(node, given)
    assert code is not None
    body = f"    y0[{_place(_strides(shape), names)}] = {code.value};\n"
    return _operator(node, _nest(shape, code.checks + body), inputs)


# ---- Movement


def _moved(node: ir.Node, steps: Sequence[Extent]) -> Operator:
    """Copy elements of the first input, by their distances along the axes of the result."""
    (out,) = results(node)
    names = _indices(len(shape_of(out)))
    source = _place(steps, names)
    body = f"    y0[{_place(_strides(shape_of(out)), names)}] = x0[{source}];\n"
    return _operator(node, _nest(shape_of(out), body), [_given(node, 0)])


def _transpose(node: ir.Node) -> Operator:
    steps = _strides(shape_of(_given(node, 0)))
    perm = _attribute(node, "perm", list(range(len(steps)))[::-1])
    return _moved(node, [steps[axis] for axis in perm])


def _expand(node: ir.Node) -> Operator:
    rank = len(shape_of(results(node)[0]))
    return _moved(node, _broadcast(shape_of(_given(node, 0)), rank))


def _tile(node: ir.Node) -> Operator:
    (out,) = results(node)
    shape, names = shape_of(_given(node, 0)), _indices(len(shape_of(out)))
    inside = [f"{name} % ({in_c(extent)})" for name, extent in zip(names, shape, strict=True)]
    source = _place(_strides(shape), [f"({text})" for text in inside])
    body = f"    y0[{_place(_strides(shape_of(out)), names)}] = x0[{source}];\n"
    return _operator(node, _nest(shape_of(out), body), [_given(node, 0)])


def _concat(node: ir.Node) -> Operator:
    (out,) = results(node)
    whole, inputs = shape_of(out), _inputs(node)
    axis = _attribute(node, "axis", 0) % len(whole)
    outer, row = count_in_c(whole[:axis]), count_in_c(whole[axis:])
    body = "  int64_t at = 0;\n"
    for index, value in enumerate(inputs):
        part = count_in_c(shape_of(value)[axis:])
        body += (
            f"  for (int64_t i = 0; i < {outer}; i++)\n"
            f"    memcpy(y0 + i * {row} + at, x{index} + i * {part}, "
            f"(size_t)({part}) * sizeof *y0);\n"
            f"  at += {part};\n"
        )
    total = " + ".join(count_in_c(shape_of(value)[axis:]) for value in inputs)
    check = _refuse_unless(node, f"{total} != {row}", "elements of a row", row, total)
    return _operator(node, check + body, inputs)


def _split(node: ir.Node) -> Operator:
    value, outputs = _given(node, 0), results(node)
    shape = shape_of(value)
    axis = _attribute(node, "axis", 0) % len(shape)
    outer, row = count_in_c(shape[:axis]), count_in_c(shape[axis:])
    parts = [count_in_c(shape_of(part)[axis:]) for part in outputs]
    body = _refuse_unless(
        node, f"{' + '.join(parts)} > {row}", "elements of a row", row, " + ".join(parts)
    )
    body += "  int64_t at = 0;\n"
    for index, part in enumerate(parts):
        body += (
            f"  for (int64_t i = 0; i < {outer}; i++)\n"
            f"    memcpy(y{index} + i * {part}, x0 + i * {row} + at, "
            f"(size_t)({part}) * sizeof *y{index});\n"
            f"  at += {part};\n"
        )
    return _operator(node, body, [value])


def _slice(node: ir.Node) -> Operator:
    value, (out,) = _given(node, 0), results(node)
    shape, made = shape_of(value), shape_of(out)
    numbers = _Numbers(node, [value])
    count = elements(shape_of(_given(node, 1)))
    axes = list(range(count)) if _input(node, 3) is None else _constants(node, 3)
    if axes is None:
        raise refuse(node, "open", "computed axes")
    steps, strides, body = ["1"] * len(shape), _strides(shape), ""
    starts = ["0"] * len(shape)
    for index, axis in enumerate(axis % len(shape) for axis in axes):
        step = "INT64_C(1)" if _input(node, 4) is None else numbers.at(4, index)
        low = f"step{axis} < 0 ? -1 : 0"
        high = f"step{axis} < 0 ? extent{axis} - 1 : extent{axis}"
        body += (
            f"  const int64_t extent{axis} = {in_c(shape[axis])}, step{axis} = {step};\n"
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
        expected = in_c(made[axis])
        body += _refuse_unless(
            node, f"count{axis} != {expected}", f"elements of axis {axis}", expected, f"count{axis}"
        )
        steps[axis], starts[axis] = f"step{axis}", f"a{axis}"
    names = _indices(len(made))
    inside = [
        name if step == "1" else f"({start} + {name} * {step})"
        for name, step, start in zip(names, steps, starts, strict=True)
    ]
    copy = f"    y0[{_place(_strides(made), names)}] = x0[{_place(strides, inside)}];\n"
    return _operator(node, body + _nest(made, copy), numbers.inputs)


def _index(node: ir.Node, text: str, extent: Extent, what: str) -> str:
    """Return statements that set `k` to an index, which may count from the end."""
    end = in_c(extent)
    return (
        f"    int64_t k = (int64_t){text};\n"
        f"    if (k < -({end}) || k >= {end})\n"
        f'      return dso_outside("{node.op_type}: {what}", -({end}), {end} - 1, k);\n'
        f"    if (k < 0) k += {end};\n"
    )


def _gather(node: ir.Node) -> Operator:
    data, indices = _given(node, 0), _given(node, 1)
    shape = shape_of(data)
    axis = _attribute(node, "axis", 0) % len(shape)
    inner, count = count_in_c(shape[axis + 1 :]), count_in_c(shape_of(indices))
    body = _index(node, "x1[i1]", shape[axis], "index")
    body += (
        f"    memcpy(y0 + (i0 * {count} + i1) * {inner}, "
        f"x0 + (i0 * {in_c(shape[axis])} + k) * {inner}, (size_t)({inner}) * sizeof *y0);\n"
    )
    extents = (product(shape[:axis]), product(shape_of(indices)))
    return _operator(node, _nest(extents, body), [data, indices])


def _gather_elements(node: ir.Node) -> Operator:
    data, indices = _given(node, 0), _given(node, 1)
    shape, made = shape_of(data), shape_of(indices)
    axis = _attribute(node, "axis", 0) % len(shape)
    names = _indices(len(made))
    at = _place(_strides(made), names)
    inside = [*names[:axis], "k", *names[axis + 1 :]]
    body = "".join(
        _refuse_unless(
            node,
            f"{in_c(made[other])} > {in_c(shape[other])}",
            f"indices of axis {other}",
            in_c(shape[other]),
            in_c(made[other]),
        )
        for other in range(len(shape))
        if other != axis and made[other] != shape[other]
    )
    loop = _index(node, f"x1[{at}]", shape[axis], "index")
    loop += f"    y0[{at}] = x0[{_place(_strides(shape), inside)}];\n"
    return _operator(node, body + _nest(made, loop), [data, indices])


def _gather_nd(node: ir.Node) -> Operator:
    data, indices = _given(node, 0), _given(node, 1)
    shape, tuples = shape_of(data), shape_of(indices)
    first, columns = _attribute(node, "batch_dims", 0), tuples[-1]
    if not isinstance(columns, int):
        raise refuse(node, "open", "the length of an index")
    inner = count_in_c(shape[first + columns :])
    steps = _strides(shape)
    body = "    int64_t from = 0;\n"
    if first:
        entry = f"i0 / ({count_in_c(tuples[first:-1])})"
        body = f"    int64_t from = {entry} * {count_in_c(shape[first:])};\n"
    for column in range(columns):
        extent, step = shape[first + column], in_c(steps[first + column])
        index = _index(node, f"x1[i0 * {columns} + {column}]", extent, f"index {column}")
        body += f"    {{\n{index}    from += k * {step};\n    }}\n"
    body += f"    memcpy(y0 + i0 * {inner}, x0 + from, (size_t)({inner}) * sizeof *y0);\n"
    return _operator(node, _nest((product(tuples[:-1]),), body), [data, indices])


# ---- Values of shapes


def _range(node: ir.Node) -> Operator:
    (out,) = results(node)
    inputs = list(dict.fromkeys(_inputs(node)))
    start, limit, delta = (f"x{inputs.index(_given(node, i))}[0]" for i in range(3))
    type_, count = c_type(out), count_in_c(shape_of(out))
    if type_ in ("float", "double"):
        length = f"(int64_t)ceil(((double){limit} - (double){start}) / (double){delta})"
    else:
        length = (
            f"{delta} < 0 ? ((int64_t){start} - {limit} - {delta} - 1) / -(int64_t){delta}"
            f" : ((int64_t){limit} - {start} + {delta} - 1) / {delta}"
        )
    body = (
        f'  if ({delta} == 0) return dso_outside("Range: delta", 1, INT64_MAX, 0);\n'
        f"  int64_t length = {length};\n  if (length < 0) length = 0;\n"
    )
    body += _refuse_unless(node, f"length != {count}", "elements", count, "length")
    element = f"    y0[i0] = ({type_})({start} + ({type_})i0 * {delta});\n"
    return _operator(node, body + _nest((product(shape_of(out)),), element), inputs)


def _shape(node: ir.Node) -> Operator:
    shape = shape_of(_given(node, 0))
    start, end = _attribute(node, "start", 0), _attribute(node, "end", len(shape))
    found = shape[slice(start, end)]
    body = "".join(f"  y0[{i}] = {in_c(extent)};\n" for i, extent in enumerate(found))
    return _operator(node, body, [])


def _size(node: ir.Node) -> Operator:
    return _operator(node, f"  y0[0] = {count_in_c(shape_of(_given(node, 0)))};\n", [])


def _constant_of_shape(node: ir.Node) -> Operator:
    (out,) = results(node)
    found = node.attributes.get("value")
    number = 0 if found is None else found.as_tensor().numpy().reshape(-1)[0].item()
    text = f"({c_type(out)}){float(number)!r}" if isinstance(number, float) else repr(int(number))
    if text.endswith(("inf", "nan")):
        raise refuse(node, "open", f"the value {number}")
    return _operator(node, _nest((product(shape_of(out)),), f"    y0[i0] = {text};\n"), [])


# ---- Reductions

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
    found = _attribute(node, "axes", None)
    if found is None and _input(node, 1) is not None:
        found = _constants(node, 1)
        if found is None:
            raise refuse(node, "open", "computed axes")
    if not found:
        is_noop = _attribute(node, "noop_with_empty_axes", 0)
        return [] if is_noop else list(range(rank))
    return sorted(axis % rank for axis in found)


def _reduce(node: ir.Node) -> Operator:
    value, (out,) = _given(node, 0), results(node)
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
    strides = _strides(shape)
    extents = [shape[axis] for axis in kept]
    count = count_in_c([shape[axis] for axis in axes])
    first = f"x0[{_place(strides, [n if n[0] == 'i' else '0' for n in names])}]"
    inner = f"    const {type_} v = x0[{_place(strides, names)}];\n    {step};\n"
    loops = _nest([shape[axis] for axis in axes], inner, "j")
    body = (
        f"    const int64_t n = {count};\n    {type_} r = {start or first};\n{loops}"
        f"    (void)n;\n"
        f"    y0[{_place(_strides(tuple(extents)), _indices(len(extents)))}] = "
        f"({c_type(out)})({end});\n"
    )
    check = "" if start else f'  if (({count}) == 0) return dso_raise("ValueError", '
    check += "" if start else f'"{node.op_type}: expected an element, found none");\n'
    return _operator(node, check + _nest(extents, body), [value])


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
    return _operator(node, _nest(extents, text), [value])


def _softmax(node: ir.Node) -> Operator:
    value = _given(node, 0)
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
    return _rows(node, value, _attribute(node, "axis", -1) % len(shape), body)


def _cum_sum(node: ir.Node) -> Operator:
    value, axes = _given(node, 0), _constants(node, 1)
    if axes is None:
        raise refuse(node, "open", "a computed axis")
    shape = shape_of(value)
    at = "n - 1 - i" if _attribute(node, "reverse", 0) else "i"
    is_exclusive = _attribute(node, "exclusive", 0)
    lines = [f"sum += x[({at}) * step];", f"y[({at}) * step] = sum;"]
    if is_exclusive:  # the result may be the input
        type_ = c_type(value)
        lines = [f"const {type_} v = x[({at}) * step];", f"y[({at}) * step] = sum;", "sum += v;"]
    body = f"    {c_type(value)} sum = 0;\n    for (int64_t i = 0; i < n; i++) {{\n"
    body += "".join(f"      {line}\n" for line in lines) + "    }\n"
    return _rows(node, value, axes[0] % len(shape), body)


def _arg(node: ir.Node) -> Operator:
    value = _given(node, 0)
    shape = shape_of(value)
    axis = _attribute(node, "axis", 0) % len(shape)
    sign = ">" if node.op_type == "ArgMax" else "<"
    sign += "=" if _attribute(node, "select_last_index", 0) else ""
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
    return _operator(node, check + _nest(extents, text), [value])


def _trilu(node: ir.Node) -> Operator:
    value, (out,) = _given(node, 0), results(node)
    numbers = _Numbers(node, [value])
    diagonal = "0" if _input(node, 1) is None else numbers.at(1, 0)
    sign = ">=" if _attribute(node, "upper", 1) else "<="
    shape, names = shape_of(out), _indices(len(shape_of(out)))
    at = _place(_strides(shape), names)
    body = f"    y0[{at}] = {names[-1]} - {names[-2]} {sign} {diagonal} ? x0[{at}] : 0;\n"
    return _operator(node, _nest(shape, body), numbers.inputs)


def _view(node: ir.Node) -> Operator:
    return Operator(node.op_type.lower(), "", (_given(node, 0),), tuple(results(node)))


_RULES: dict[str, Callable[[ir.Node], Operator]] = {
    **dict.fromkeys(_VIEWS, _view),
    **dict.fromkeys(_REDUCTIONS, _reduce),
    "ArgMax": _arg,
    "ArgMin": _arg,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "CumSum": _cum_sum,
    "Expand": _expand,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "LogSoftmax": _softmax,
    "Range": _range,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Softmax": _softmax,
    "Split": _split,
    "Tile": _tile,
    "Transpose": _transpose,
    "Trilu": _trilu,
}
