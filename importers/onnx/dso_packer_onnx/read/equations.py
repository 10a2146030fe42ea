"""Open extents that must be equal, as shapes that are added to each other, and their bounds.

A table of 128 positions, cut to the length of a text, has Min(128, seq) rows; where they are added
to the seq rows of the text, a call must have at most 128. Such a bound is put into the shapes of
the model, which then have seq for both, and each call checks it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from ..extent import Extent, product, written
from ..extent_text import parsed
from .words import name_of_node

if TYPE_CHECKING:
    import onnx_ir as ir

KEY = "conditions"  # in `ir.Model.meta`
RANGES = "ranges"  # likewise: the least and greatest open extents that the model comes with
_RANGE = "the model's range"
_ALIKE = {"Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal"}
_ALIKE |= {"Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul"}
_ALIKE |= {"Or", "Pow", "PRelu", "Sub", "Sum", "Where", "Xor"}


class Equation(NamedTuple):
    """Two extents that must be equal, and the node that needs it."""

    one: Extent
    other: Extent
    where: str


class Conditions(NamedTuple):
    """The conditions of a model's open extents, which each call checks."""

    most: dict[str, int]  # the greatest value of an extent
    equations: tuple[Equation, ...]


def put_conditions(
    model: ir.Model,
    ranges: Mapping[str, tuple[int, int | None]],
    equal: Sequence[tuple[Extent, Extent, str]],
) -> None:
    """Find the conditions of a model with shapes, and use the bounds in its shapes.

    `ranges` are the least and greatest values of symbols. `equal` are symbols whose values must be
    equal, each pair with the node that needs it.
    """
    import onnx_ir as ir

    found = {(one.one, one.other): one for one in _equations(model.graph)}
    found |= {(other, one): Equation(other, one, where) for one, other, where in equal}
    least = {name: number for name, (number, _) in ranges.items() if number}
    found |= {
        (f"Max({n}, {s})", s): Equation(f"Max({n}, {s})", s, _RANGE) for s, n in least.items()
    }
    most = {name: number for name, (_, number) in ranges.items() if number is not None}
    for (one, other), _ in [*found.items()]:
        bound = _bound(one, other) or _bound(other, one)
        if bound is not None:
            name, number = bound
            most[name] = min(number, most.get(name, number))
            del found[one, other]
    if most:
        for value in _values(model.graph):
            value.shape = ir.Shape(_bounded(extent, most) for extent in extents_of(value))
    left = (
        Equation(_bounded(one, most), _bounded(other, most), equation.where)
        for (one, other), equation in found.items()
    )
    model.meta[KEY] = Conditions(most, tuple(one for one in left if one.one != one.other))


def conditions_of(model: ir.Model) -> Conditions:
    """Return the conditions of a model of `with_shapes`."""
    found: Conditions = model.meta[KEY]
    return found


def _equations(graph: ir.Graph) -> Iterator[Equation]:
    for node in graph:
        if node.domain not in ("", "ai.onnx"):
            continue
        shapes = [extents_of(value) for value in node.inputs if value is not None]
        pairs: list[tuple[Extent, Extent]] = []
        if node.op_type in _ALIKE:
            pairs = [pair for shape in shapes for pair in _aligned(shapes[0], shape)]
            pairs += [pair for shape in shapes[1:] for pair in _aligned(shapes[1], shape)]
        elif node.op_type == "Concat":
            axis = node.attributes.get_int("axis", 0) % max(len(shapes[0]), 1)
            for shape in shapes:
                both = zip(shapes[0], shape, strict=True)
                pairs += [pair for i, pair in enumerate(both) if i != axis]
        elif node.op_type == "MatMul" and min(map(len, shapes)) > 1:
            pairs = [(shapes[0][-1], shapes[1][-2]), *_aligned(shapes[0][:-2], shapes[1][:-2])]
        elif node.op_type in ("DepthToSpace", "Reshape", "SpaceToDepth"):
            pairs = [(product(shapes[0]), product(extents_of(node.outputs[0])))]
        for one, other in pairs:
            if one != other:
                yield Equation(one, other, name_of_node(node))


def _aligned(one: list[Extent], other: list[Extent]) -> Iterator[tuple[Extent, Extent]]:
    """Yield the extents of the same axis of two shapes, unless one of them is 1."""
    for a, b in zip_longest(reversed(one), reversed(other), fillvalue=1):
        if 1 not in (a, b):
            yield a, b


def _bound(one: Extent, other: Extent) -> tuple[str, int] | None:
    """Return the symbol and its greatest value, where `one` is that minimum of `other`."""
    import sympy

    if not isinstance(one, str) or not isinstance(other, str):
        return None
    least, symbol = parsed(one), parsed(other)
    if not symbol.is_Symbol or not isinstance(least, sympy.Min):
        return None
    numbers = [int(arg) for arg in least.args if arg.is_Integer]
    is_minimum = len(numbers) == 1 and {*least.args} == {sympy.Integer(numbers[0]), symbol}
    return (symbol.name, numbers[0]) if is_minimum else None


def _bounded(extent: Extent, most: dict[str, int]) -> Extent:
    """Return an extent without minimums that the bounds decide."""
    import sympy

    if not isinstance(extent, str) or "Min" not in extent:
        return extent
    expression = parsed(extent)
    known = {}
    for least in expression.atoms(sympy.Min):
        symbols = [arg for arg in least.args if arg.is_Symbol]
        numbers = [int(arg) for arg in least.args if arg.is_Integer]
        if len(least.args) == len(symbols) + len(numbers) == 2 and len(symbols) == 1:
            bound = most.get(symbols[0].name)
            if bound is not None and bound <= numbers[0]:
                known[least] = symbols[0]
    return written(expression.xreplace(known))


def _values(graph: ir.Graph) -> Iterator[ir.Value]:
    yield from graph.inputs
    for node in graph:
        yield from (value for value in node.outputs if value.shape is not None)


def extents_of(value: ir.Value) -> list[Extent]:
    """Return the extents of a value; 0 for one that is not known."""
    dims = value.shape if value.shape is not None else ()
    return [extent if isinstance(extent, int) else str(extent.value or 0) for extent in dims]
