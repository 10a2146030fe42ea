"""Extents as ONNX defines them, where onnx_shape_inference has others or none.

It takes the numbers of a Slice to be inside of an open axis, and knows no negative steps; open
extents after windows that round up or are padded by name it leaves unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from ..extent import Extent, expression_of, rounded_up, written

if TYPE_CHECKING:
    import onnx_ir as ir

_FAR = (1 << 31) - 1  # a number from here on is the end of any axis


@cache
def register_exact() -> None:
    """Make onnx_shape_inference use the functions of this file."""
    from onnx_shape_inference import registry

    registry.collect()
    for kind, since, extents in (
        ("Slice", 13, _sliced),
        ("Conv", 2, _windows),
        ("AveragePool", 2, _windows),
        ("MaxPool", 2, _windows),
        ("LpPool", 2, _windows),
    ):
        theirs = registry.get("", kind, since - 1)
        assert theirs is not None
        registry.register("", kind, since_version=since)(partial(_infer, theirs, extents))


def _infer(
    theirs: Callable[[Any, ir.Node], None],
    extents: Callable[[ir.Node], Mapping[int, Extent]],
    ctx: Any,
    node: ir.Node,
) -> None:
    import onnx_ir as ir

    theirs(ctx, node)
    for made in node.outputs:
        if node.inputs[0].shape is not None and made.shape is not None:
            found = extents(node)
            made.shape = ir.Shape([found.get(axis, one) for axis, one in enumerate(made.shape)])


def _extent(shape: ir.Shape, axis: int) -> Extent | None:
    extent = shape[axis]
    return extent if isinstance(extent, int) else extent.value


def _sliced(node: ir.Node) -> dict[int, Extent]:
    """Return the extents of the axes that a Slice takes by constant numbers."""
    shape = node.inputs[0].shape
    starts, ends, axes, steps = (_numbers(value) for value in [*node.inputs, None, None][1:5])
    found: dict[int, Extent] = {}
    for index, axis in enumerate(axes or range(len(starts or ()))):
        before = _extent(shape, axis)
        if starts and ends and before is not None and (steps or len(node.inputs) < 5):
            step = steps[index] if steps else 1
            found[axis % len(shape)] = _count(before, starts[index], ends[index], step)
    return found


def _windows(node: ir.Node) -> dict[int, Extent]:
    """Return the extents after windows that round up, or that are padded by name."""
    import sympy

    attributes, shape = node.attributes, node.inputs[0].shape
    mode, rounds_up = (
        attributes.get_string("auto_pad", "NOTSET"),
        attributes.get_int("ceil_mode", 0),
    )
    kernel = attributes.get_ints("kernel_shape")
    if kernel is None and node.op_type == "Conv" and node.inputs[1].shape is not None:
        kernel = node.inputs[1].shape[2:]
    if (mode in ("NOTSET", "") and not rounds_up) or not kernel:
        return {}
    axes = len(kernel)
    strides = attributes.get_ints("strides") or [1] * axes
    dilations = attributes.get_ints("dilations") or [1] * axes
    pads = (attributes.get_ints("pads") if mode in ("NOTSET", "") else None) or [0] * (2 * axes)
    found: dict[int, Extent] = {}
    for axis, (size, step) in enumerate(zip(kernel, strides, strict=True)):
        before = _extent(shape, 2 + axis)
        if before is None or not isinstance(size, int):
            continue
        length, reach = expression_of(before), (size - 1) * dilations[axis] + 1
        if mode.startswith("SAME"):
            count = rounded_up(sympy.Rational(1, step) * length)
        else:
            room = length + pads[axis] + pads[axes + axis] - reach
            count = sympy.floor(sympy.Rational(1, step) * room) + 1
            if rounds_up:  # the last window begins in the image or in the pads before it
                last = min(room + step - length, pads[axis])
                count = rounded_up(sympy.Rational(1, step) * (length + last))
        found[2 + axis] = written(count)
    return found


def _numbers(value: ir.Value | None) -> list[int] | None:
    import onnx_ir as ir

    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None else [int(number) for number in tensor.numpy().reshape(-1)]


def _count(extent: Extent, start: int, end: int, step: int) -> Extent:
    """Return how many elements of an axis a Slice takes."""
    import sympy

    length = expression_of(extent)
    first, last = (_place(length, number, step) for number in (start, end))
    distance = last - first if step > 0 else first - last
    return written(sympy.Max(0, rounded_up(sympy.sympify(distance) / abs(step))))


def _place(length: Any, number: int, step: int) -> Any:
    """Return where a number points to: from the end if it is negative, and limited to the axis."""
    import sympy

    least, greatest = (0, length) if step > 0 else (-1, length - 1)
    if number >= _FAR:
        return greatest
    if number <= -_FAR:
        return sympy.Integer(least)
    return sympy.Max(least, length + number) if number < 0 else sympy.Min(greatest, number)
