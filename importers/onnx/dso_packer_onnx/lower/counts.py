"""Checks of results whose length the data decides: the declared one must be the real one.

Generated code writes what it finds, whatever the result has room for. Without a check the rest of
a result that is too long is memory that nothing wrote.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..dtypes import c_type
from ..operator import elements
from .one_node import results
from .refused import refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    import onnx_ir as ir

    from ..operator import Shape
    from .storage import Storage


class Checks(NamedTuple):
    """C statements around the call of generated code."""

    before: tuple[str, ...] = ()  # statements that return an error if `count` is not as expected
    after: tuple[str, ...] = ()  # likewise


class _Node(NamedTuple):
    """A node with the shapes of its values, and where the C function has them."""

    node: ir.Node
    shapes: dict[ir.Value, Shape]
    storages: dict[ir.Value, Storage]

    def input(self, index: int) -> ir.Value | None:
        inputs = self.node.inputs
        return inputs[index] if index < len(inputs) else None

    def extents(self, value: ir.Value) -> tuple[int, ...]:
        return tuple(extent for extent in self.shapes[value] if isinstance(extent, int))

    def data(self, value: ir.Value) -> str:
        return f"((const {c_type(value)} *){self.storages[value].argument})"

    def number(self, value: ir.Value, index: int) -> str:
        """Return an element of an input of whole numbers, as C."""
        if value in self.storages:
            return f"{self.data(value)}[{index}]"
        assert value.const_value is not None  # it is in the code
        number = int(value.const_value.numpy().reshape(-1)[index])
        return f"({number + 1}LL - 1)" if number < 0 else f"{number}LL"

    def axis(self) -> int | None:
        found = self.node.attributes.get("axis")
        return None if found is None else int(found.as_int())


def count_checks(
    node: ir.Node, shapes: dict[ir.Value, Shape], storages: dict[ir.Value, Storage]
) -> Checks:
    """Return the checks of a node; none if its inputs' shapes decide the shape of its result.

    Parameters
    ----------
    node : ir.Node
        The operator.
    shapes : dict of ir.Value to tuple of int
        The shape of each value.
    storages : dict of ir.Value to Storage
        The inputs and outputs of the C function; constants in the code are not among them.

    Raises
    ------
    OperatorRefusedError
        A constant decides the length, and it is not the declared one.
    """
    rule = _RULES.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    return rule(_Node(node, shapes, storages)) if rule else Checks()


def _refuse_unless(one: _Node, what: str, expected: int) -> str:
    text = f'"{one.node.op_type}: {what}"'
    return f"if (count != {expected}) return dso_outside({text}, {expected}, {expected}, count);"


def _true(one: _Node, index: int, expected: int) -> Checks:
    """Count the elements of an input that are true."""
    what, value = "elements that are true", one.input(index)
    assert value is not None
    if value not in one.storages:
        assert value.const_value is not None  # it is in the code
        found = int((value.const_value.numpy() != 0).sum())
        if found != expected:
            why = f"{what}, expected {expected} as declared, found {found}"
            raise refuse(one.node, "unknown", why)
        return Checks()
    return Checks(
        (
            "int64_t count = 0;",
            f"for (int64_t i = 0; i < {elements(one.shapes[value])}; i++)"
            f" count += {one.data(value)}[i] != 0;",
            _refuse_unless(one, what, expected),
        )
    )


def _nonzero(one: _Node) -> Checks:
    return _true(one, 0, one.extents(results(one.node)[0])[1])


def _compress(one: _Node) -> Checks:
    return _true(one, 1, one.extents(results(one.node)[0])[one.axis() or 0])


def _unique(one: _Node) -> Checks:
    """Count the elements, or the slices of the axis, that no earlier one equals."""
    value, axis = one.input(0), one.axis()
    assert value is not None and value in one.storages
    shape = one.extents(value)
    outer, length, inner = 1, elements(shape), 1
    if axis is not None:
        axis %= len(shape)
        outer, length, inner = elements(shape[:axis]), shape[axis], elements(shape[axis + 1 :])
    data = one.data(value)
    mine, other = (
        f"{data}[(k / {inner} * {length} + {i}) * {inner} + k % {inner}]" for i in ("i", "j")
    )
    return Checks(
        (
            "int64_t count = 0;",
            f"for (int64_t i = 0; i < {length}; i++) {{\n"
            "    int64_t j = 0, k = 0;\n"
            f"    for (; j < i; j++, k = 0) {{\n"
            f"      while (k < {outer * inner} && {mine} == {other}) k++;\n"
            f"      if (k == {outer * inner}) break;\n"
            "    }\n"
            "    count += j == i;\n"
            "  }",
            _refuse_unless(
                one, "elements that differ", one.extents(one.node.outputs[0])[axis or 0]
            ),
        )
    )


def _selected(one: _Node) -> Checks:
    """Count the boxes; `emx.counted` makes the code write how many did not fit."""
    result = results(one.node)[0]
    rows, data = one.extents(result)[0], f"((int64_t *){one.storages[result].argument})"
    if not rows:
        raise refuse(one.node, "shape", "no box is selected, as declared")
    return Checks(
        (f"for (int64_t i = 0; i < {rows}; i++) {data}[3 * i] = -1;",),
        (
            "int64_t count = 0;",
            f"while (count < {rows} && {data}[3 * count] >= 0) count++;",
            f"if ({data}[0] < -1) count = -{data}[0];",
            _refuse_unless(one, "selected boxes", rows),
        ),
    )


def _slice(one: _Node) -> Checks:
    """Compare the length of each axis that is cut; nothing if constants cut them."""
    value, result = one.input(0), results(one.node)[0]
    starts, ends, steps = one.input(1), one.input(2), one.input(4)
    assert value is not None and starts is not None and ends is not None
    if not {starts, ends, steps, one.input(3)} & one.storages.keys():
        return Checks()
    lines = []
    for index, axis in enumerate(_axes(one, elements(one.shapes[starts]))):
        numbers = [one.number(each, index) for each in (starts, ends)]
        step = one.number(steps, index) if steps is not None else "1"
        what = f"elements of axis {axis}"
        lines.append(
            f"{{\n    const int64_t extent = {one.extents(value)[axis]}, step = {step};\n"
            f"    int64_t a = {numbers[0]}, b = {numbers[1]}, count;\n"
            "    const int64_t low = step < 0 ? -1 : 0, high = step < 0 ? extent - 1 : extent;\n"
            "    a += a < 0 ? extent : 0;\n"
            "    b += b < 0 ? extent : 0;\n"
            "    a = a < low ? low : a > high ? high : a;\n"
            "    b = b < low ? low : b > high ? high : b;\n"
            "    count = step < 0 ? a - b : b - a;\n"
            "    count = count < 0 ? 0 : step ? (count - 1) / llabs(step) + (count > 0) : -1;\n"
            f"    {_refuse_unless(one, what, one.extents(result)[axis])}\n  }}"
        )
    return Checks(tuple(lines))


def _axes(one: _Node, count: int) -> list[int]:
    value = one.input(3)
    if value is None:
        return list(range(count))
    assert value.const_value is not None  # `read` has refused others
    rank = len(one.shapes[results(one.node)[0]])
    return [int(axis) % rank for axis in value.const_value.numpy().reshape(-1)]


def _transformed_axis(one: _Node) -> Checks:
    """Check the axis of a DFT; the last one has the parts of the numbers."""
    axis = one.input(2)
    if axis is None or axis not in one.storages:
        return Checks()
    rank = len(one.shapes[results(one.node)[0]])
    return Checks(
        (
            f"const int64_t axis = {one.number(axis, 0)};",
            f"if (axis < -{rank} || axis > {rank - 2} || axis == -1)\n"
            f'    return dso_outside("DFT: axis", -{rank}, {rank - 2}, axis);',
        )
    )


_RULES: dict[str, Callable[[_Node], Checks]] = {
    "Compress": _compress,
    "DFT": _transformed_axis,
    "NonMaxSuppression": _selected,
    "NonZero": _nonzero,
    "Slice": _slice,
    "Unique": _unique,
}
