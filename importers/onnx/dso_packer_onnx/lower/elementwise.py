"""A chain of elementwise operators as one loop over vectors, with broadcasting.

Dimensions that are adjacent for all tensors become one; the last of what remains is the loop of
vectors, and some rows of it are an item for a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..extent import Extent, in_c, product
from ..image import BLOCKED, image_of
from ..operator import elements, shape_of, stored, stored_shape
from .code import operator_of
from .epilogue import float_in_c
from .expression import expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    import onnx_ir as ir

    from ..operator import Operator, Shape

_ITEM = 4096  # elements of an item, at least


class _Dimension(NamedTuple):
    """A dimension of the loop nest."""

    extent: Extent
    steps: tuple[Extent, ...]  # the distance in floats of each input and, last, of the output


def elementwise(node: ir.Node) -> Operator:
    """Lower a chain; inputs that are one number become constants of the code."""
    (out,) = node.outputs
    graph = node.attributes["graph"].as_graph()
    numbers = {id(inner): _number(outer) for inner, outer in _pairs(node, graph)}
    used = [outer for inner, outer in _pairs(node, graph) if numbers[id(inner)] is None]
    names = {
        id(inner): f"a{used.index(outer)}"
        for inner, outer in _pairs(node, graph)
        if numbers[id(inner)] is None
    }
    dims = _dimensions(used, out)
    before = (
        '#include "elementwise.h"\n'
        + _value_function(graph, names, numbers, len(used))
        + _row_function(dims[-1].steps[:-1])
        + _item_function(dims, len(used))
    )
    return operator_of(
        "elementwise",
        _launch(dims, used, out) + _padding(out) + "  return 0;\n",
        used,
        [out],
        parts=["elementwise"],
        flops=elements(shape_of(out)) * len(graph),
        before=before,
    )


def _pairs(node: ir.Node, graph: ir.Graph) -> list[tuple[ir.Value, ir.Value]]:
    return [
        (inner, outer)
        for inner, outer in zip(graph.inputs, node.inputs, strict=True)
        if outer is not None
    ]


def _number(value: ir.Value) -> float | None:
    """Return the value of a constant of one element."""
    constant = value.const_value
    if constant is None or constant.size != 1:
        return None
    return float(constant.numpy().reshape(()))


# ---- One vector


def _value_function(
    graph: ir.Graph, names: dict[int, str], numbers: dict[int, float | None], count: int
) -> str:
    """Return the function of one vector of each input."""
    names, numbers = dict(names), dict(numbers)
    lines = []
    for value in graph.initializers.values():
        numbers[id(value)] = _number(value)
    for i, node in enumerate(graph):
        args, constants = [], []
        for value in node.inputs:
            number = numbers.get(id(value)) if value is not None else None
            constants.append(number)
            named = "" if value is None else names.get(id(value), "")
            args.append(f"splat({float_in_c(number)})" if number is not None else named)
        lines.append(f"  const vec t{i} = {expression(node, args, constants)};\n")
        names[id(node.outputs[0])] = f"t{i}"
    parameters = ", ".join(f"const vec a{i}" for i in range(count)) or "void"
    result = names[id(graph.outputs[0])]
    return f"INLINE vec value({parameters}) {{\n{''.join(lines)}  return {result};\n}}\n"


# ---- One row


def _row_function(steps: tuple[Extent, ...]) -> str:
    """Return the loop over vectors; the last floats are computed in a copy."""
    pointers = "".join(f"const float *x{i}, " for i in range(len(steps)))
    fixed = "".join(
        f"  const vec a{i} = splat(*x{i});\n" for i, step in enumerate(steps) if not step
    )
    args = ", ".join(f"load(x{i} + i)" if step else f"a{i}" for i, step in enumerate(steps))
    moving = [i for i, step in enumerate(steps) if step]
    rest = "".join(f"    float r{i}[LANES] = {{0}};\n" for i in moving)
    copies = "".join(
        f"    for (int64_t l = 0; l < n - i; l++) r{i}[l] = x{i}[i + l];\n" for i in moving
    )
    of_rest = ", ".join(f"load(r{i})" if step else f"a{i}" for i, step in enumerate(steps))
    return f"""\
static void row({pointers}float *y, int64_t n) {{
  int64_t i = 0;
{fixed}  for (; i + LANES <= n; i += LANES) store(y + i, value({args}));
  if (i < n) {{
{rest}{copies}    const vec last = value({of_rest});
    for (int64_t l = 0; l < n - i; l++) y[i + l] = last[l];
  }}
}}
"""


# ---- All rows


def _dimensions(inputs: Sequence[ir.Value], out: ir.Value) -> list[_Dimension]:
    """Return the loop nest, outermost first; the last one has steps of 1 or 0."""
    shape, strides = _inside(out)
    all_steps = [_broadcast(value, out) for value in inputs]
    dims: list[_Dimension] = []
    for d, extent in enumerate(shape):
        steps = (*(of_input[d] for of_input in all_steps), strides[d])
        if extent == 1:
            continue
        if dims:
            outer = dims[-1]
            if all(o == product((s, extent)) for o, s in zip(outer.steps, steps, strict=True)):
                dims[-1] = _Dimension(product((outer.extent, extent)), steps)
                continue
        dims.append(_Dimension(extent, steps))
    if not dims or not {*dims[-1].steps} <= {0, 1}:
        dims.append(_Dimension(1, (1,) * (len(inputs) + 1)))
    return dims


def _inside(value: ir.Value) -> tuple[Shape, tuple[Extent, ...]]:
    """Return extents without the padding, and the distances, of a value as it is stored."""
    shape = stored_shape(value)
    strides: list[Extent] = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, product((strides[0], extent)))
    if stored(value).layout == BLOCKED:
        image = image_of(value)
        shape = (shape[0], shape[1], image.height, image.width, shape[4])
    return shape, tuple(strides[: len(shape)])


def _broadcast(value: ir.Value, out: ir.Value) -> list[Extent]:
    """Return the distances of an input along the dimensions of the output's stored form."""
    if stored(out).layout == BLOCKED and stored(value).layout != BLOCKED:
        # One value per channel, or for each pixel of all channels.
        batch, channels, height, width = (1, 1, 1, 1, *shape_of(value))[-4:]
        plane = product((height, width))
        in_blocks = channels != 1
        assert plane == 1 or not in_blocks
        return [
            0 if batch == 1 else product((channels, plane)),
            16 if in_blocks else 0,
            0 if height == 1 else width,
            0 if width == 1 else 1,
            1 if in_blocks else 0,
        ]
    shape, strides = _inside(value)
    ndim = len(_inside(out)[0])
    steps: list[Extent] = [
        0 if extent == 1 else step for extent, step in zip(shape, strides, strict=True)
    ]
    return [0] * (ndim - len(shape)) + steps


def _item_function(dims: list[_Dimension], count: int) -> str:
    """Return the function of an item: some rows, or a part of the only row.

    Every number is a field, so that chains of other extents may share the functions.
    """
    pointers = "".join(f"const float *x{i}; " for i in range(count))
    outer, args = dims[:-1], [*(f"t->x{i}" for i in range(count)), "t->y"]
    numbers = "".join(f", {field}" for field in _fields(outer))
    struct = f"struct tensors {{ {pointers}float *y; int64_t rows, n, each{numbers}; }};\n"
    if not outer:
        steps = zip(args, dims[-1].steps, strict=True)
        at = [f"{arg} + at" if step else arg for arg, step in steps]
        return f"""{struct}static void item(const void *data, int64_t index) {{
  const struct tensors *t = data;
  const int64_t at = index * t->each;
  row({", ".join(at)}, min(t->n - at, t->each));
}}
"""
    last, names = len(outer) - 1, [*(f"x{i}" for i in range(count)), "y"]
    split, after = "", ""
    for d in range(last, -1, -1):
        split += f"  int64_t i{d} = rest % t->extent{d};\n"
        split += f"  rest /= t->extent{d};\n" if d else ""
        after += f"    if (++i{d} < t->extent{d}) continue;\n    i{d} = 0;\n" if d < last else ""
    rows, begins = [], ""
    for i, name in enumerate(names):
        terms = [f"i{d} * t->step{d}_{i}" for d, dim in enumerate(outer) if dim.steps[i]]
        step = terms.pop() if outer[-1].steps[i] else "0"
        type_ = "float" if name == "y" else "const float"
        begins += f"    {type_} *{name} = {' + '.join([f't->{name}', *terms])};\n"
        begins += f"    const int64_t step{i} = t->step{last}_{i};\n" if step != "0" else ""
        rows.append(f"{name} + i{last} * step{i}" if step != "0" else name)
    return f"""{struct}static void item(const void *data, int64_t index) {{
  const struct tensors *t = data;
  int64_t number = index * t->each, rest = number;
  const int64_t end = min(t->rows, number + t->each), n = t->n;
{split}  while (number < end) {{
    const int64_t stop = min(t->extent{last}, i{last} + end - number);
{begins}    number += stop - i{last};
    for (; i{last} < stop; i{last}++) row({", ".join(rows)}, n);
    i{last} = 0;
{after}  }}
}}
"""


def _fields(outer: list[_Dimension]) -> dict[str, Extent]:
    """Return the numbers of the loops around a row, by the names of their fields."""
    made: dict[str, Extent] = {}
    for d, dim in enumerate(outer):
        made[f"extent{d}"] = dim.extent
        made |= {f"step{d}_{i}": step for i, step in enumerate(dim.steps) if step}
    return made


def _launch(dims: list[_Dimension], inputs: Sequence[ir.Value], out: ir.Value) -> str:
    *outer, inner = [in_c(dim.extent) for dim in dims]
    pointers = [*(f"x{i}{_first(value)}" for i, value in enumerate(inputs)), f"y0{_first(out)}"]
    rows, each = " * ".join(outer) or "1", f"max(1, {_ITEM} / max(1, {inner}))"
    items = "ceil_div(tensors.rows, tensors.each)"
    if not outer:
        each, items = str(_ITEM), "ceil_div(tensors.n, tensors.each)"
    fields = [*pointers, rows, inner, each, *map(in_c, _fields(dims[:-1]).values())]
    return f"""\
  const struct tensors tensors = {{{", ".join(fields)}}};
  if (dso_op_parallel(item, &tensors, {items}, tensors.rows * tensors.n)) return -1;
"""


def _first(value: ir.Value) -> str:
    """Return the distance of the first pixel from a tensor's begin, as an addition in C."""
    if stored(value).layout != BLOCKED or not stored(value).padding:
        return ""
    image = image_of(value)
    return f" + {in_c(image.first)}"


def _padding(out: ir.Value) -> str:
    """Return statements that write the zeros around the images of the output."""
    if not stored(out).padding:
        return ""
    image = image_of(out)
    batch = in_c(image.batch)
    return f"""\
  struct dso_op_image out = {image.in_c("y0")};
  for (int64_t i = 0; i < {batch}; i++, out.data += out.batch)
    for (int64_t p = 0; p < {image.planes}; p++) dso_op_write_padding(&out, p, 1);
"""
