"""Extents as ONNX defines them, where onnx_shape_inference has others or none.

It takes the numbers of a Slice to be inside of an open axis, and knows no negative steps. It takes
an open extent to be at least 1, so a Range from 1 to it is never empty. Open extents after windows
that round up or are padded by name it leaves unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any

from ..extent import (
    Extent,
    expression_of,
    greater,
    rounded_down,
    rounded_up,
    total,
    written,
)
from .numbers import numbers_of
from .types import known_extents

if TYPE_CHECKING:
    import onnx_ir as ir

_DENOMINATOR = 1000  # of a scale, at most
_FAR = (1 << 31) - 1  # a number from here on is the end of any axis


@cache
def register_exact() -> None:
    """Make onnx_shape_inference use the functions of this file."""
    from onnx_shape_inference import registry

    registry.collect()
    for kind, since, exact in (
        ("ConstantOfShape", 10, _filled),
        ("Range", 12, _ranged),
        ("Slice", 13, partial(_infer, _sliced)),
        ("Conv", 2, partial(_infer, _windows)),
        ("ConvInteger", 11, partial(_infer, _windows)),
        ("QLinearConv", 11, partial(_infer, _windows)),
        ("AveragePool", 2, partial(_infer, _windows)),
        ("MaxPool", 2, partial(_infer, _windows)),
        ("LpPool", 2, partial(_infer, _windows)),
        ("Pad", 13, partial(_infer, _padded)),
        ("Resize", 13, partial(_infer, _resized)),
        ("STFT", 18, partial(_infer, _framed)),
    ):
        theirs = registry.get("", kind, since - 1)
        assert theirs is not None
        registry.register("", kind, since_version=since)(partial(exact, theirs))


def _filled(theirs: Callable[[Any, ir.Node], None], ctx: Any, node: ir.Node) -> None:
    """Let a ConstantOfShape have extents that follow from open ones."""
    import onnx_ir as ir

    extents, filling = numbers_of(node.inputs[0]), node.attributes.get("value")
    if extents is None:
        theirs(ctx, node)
        return
    dtype = ir.DataType.FLOAT if filling is None else filling.as_tensor().dtype
    ctx.set_shape_and_dtype(node.outputs[0], ir.Shape(extents), dtype)


def _ranged(theirs: Callable[[Any, ir.Node], None], ctx: Any, node: ir.Node) -> None:
    """Let a Range of integers have no element where its limit is before its start."""
    import onnx_ir as ir
    import sympy

    numbers = [numbers_of(value) for value in node.inputs]
    start, limit, step = (one[0] if one else None for one in numbers)
    dtype = node.inputs[0].dtype
    if (
        start is None
        or limit is None
        or not isinstance(step, int)
        or not step
        or not dtype.is_integer()
    ):
        theirs(ctx, node)
        return
    distance = sympy.sympify(expression_of(limit)) - expression_of(start)
    count = written(greater(rounded_up(distance / step), 0))
    ctx.set_shape_and_dtype(node.outputs[0], ir.Shape([count]), dtype)


def _infer(
    exact: Callable[[ir.Node, Sequence[Extent | None]], list[Extent | None] | None],
    theirs: Callable[[Any, ir.Node], None],
    ctx: Any,
    node: ir.Node,
) -> None:
    import onnx_ir as ir

    data = node.inputs[0]
    before = known_extents(data.shape) or ()
    is_open = any(not isinstance(extent, int) for extent in before)
    found = exact(node, before) if is_open else None
    if found is None:
        theirs(ctx, node)
        return
    made = data.dtype if node.op_type != "ConvInteger" else ir.DataType.INT32
    if node.op_type == "QLinearConv":
        made = node.inputs[7].dtype
    for value, dtype in zip(node.outputs, (made, ir.DataType.INT64), strict=False):
        ctx.set_shape_and_dtype(value, ir.Shape(found), dtype)


def _sliced(node: ir.Node, before: Sequence[Extent | None]) -> list[Extent | None] | None:
    """Return the extents after a Slice by constant numbers."""
    starts, ends, axes, steps = (_numbers(value) for value in [*node.inputs, None, None][1:5])
    if starts is None or ends is None or (steps is None and len(node.inputs) > 4):
        return None
    found = [*before]
    for index, axis in enumerate(axes or range(len(starts))):
        extent, step = before[axis], steps[index] if steps else 1
        if extent is not None:
            found[axis] = _count(extent, starts[index], ends[index], step)
    return found


def _windows(node: ir.Node, before: Sequence[Extent | None]) -> list[Extent | None] | None:
    """Return the extents after windows that round up, or that are padded by name."""
    import sympy

    attributes = node.attributes
    mode, rounds_up = (
        attributes.get_string("auto_pad", "NOTSET"),
        attributes.get_int("ceil_mode", 0),
    )
    if mode in ("NOTSET", "") and not rounds_up:
        return None
    channels, kernel = before[1], attributes.get_ints("kernel_shape")
    weight = {"Conv": 1, "ConvInteger": 1, "QLinearConv": 3}.get(node.op_type)
    if weight:
        channels, _, *kernel = known_extents(node.inputs[weight].shape) or (None, None)
    if not kernel or not all(isinstance(size, int) for size in kernel):
        return None
    axes = len(kernel)
    strides = attributes.get_ints("strides") or [1] * axes
    dilations = attributes.get_ints("dilations") or [1] * axes
    pads = (attributes.get_ints("pads") if mode in ("NOTSET", "") else None) or [0] * (2 * axes)
    found: list[Extent | None] = [before[0], channels]
    for axis, (size, step) in enumerate(zip(kernel, strides, strict=True)):
        extent = before[2 + axis]
        if extent is None:
            found.append(None)
            continue
        length, reach = expression_of(extent), (size - 1) * dilations[axis] + 1
        room = length + pads[axis] + pads[axes + axis] - reach
        if mode.startswith("SAME"):
            count = rounded_up(sympy.Rational(1, step) * length)
        elif rounds_up:  # the last window begins in the image or in the pads before it
            last = min(room + step - length, pads[axis])
            count = rounded_up(sympy.Rational(1, step) * (length + last))
        else:
            count = rounded_down(sympy.Rational(1, step) * room) + 1
        found.append(written(count))
    return found


def _padded(node: ir.Node, before: Sequence[Extent | None]) -> list[Extent | None] | None:
    """Return the extents after pads that are numbers, or follow from open extents."""
    pads, axes = numbers_of(node.inputs[1]), _numbers([*node.inputs, None, None][3])
    if pads is None or (axes is None and len(node.inputs) > 3 and node.inputs[3] is not None):
        return None
    found = [*before]
    named = axes if axes is not None else range(len(before))
    for index, axis in enumerate(named):
        extent = before[axis]
        if extent is not None:
            found[axis] = total([extent, pads[index], pads[index + len(pads) // 2]])
    return found


def _resized(node: ir.Node, before: Sequence[Extent | None]) -> list[Extent | None] | None:
    """Return the extents after a Resize to sizes, or by constant scales of the whole image."""
    import onnx_ir as ir

    scales, sizes = [*node.inputs, None, None, None][2:4]
    policy = node.attributes.get_string("keep_aspect_ratio_policy", "stretch")
    mode = node.attributes.get_string("coordinate_transformation_mode", "half_pixel")
    numbers: Sequence[Extent] | None = numbers_of(sizes) if policy == "stretch" else None
    axes = node.attributes.get_ints("axes") or range(len(before))
    factors = None if scales is None else ir.convenience.get_const_tensor(scales)
    known = [extent for axis in axes if (extent := before[axis]) is not None]
    is_scaled = factors is not None and factors.size and mode != "tf_crop_and_resize"
    if factors is not None and is_scaled and len(known) == len(axes):
        pairs = zip(known, factors.numpy(), strict=True)
        numbers = [_scaled(extent, factor) for extent, factor in pairs]
    if numbers is None:
        return None
    found = [*before]
    for axis, number in zip(axes, numbers, strict=True):
        found[axis] = number
    return found


def _scaled(extent: Extent, factor: Any) -> Extent:
    """Return an extent times a factor of float32, taken for a near fraction of small numbers.

    So 40 times 2.3 is 92, as it is if float32 multiplies, and not a bit less.
    """
    import sympy

    exact = Fraction(float(factor))
    short = exact.limit_denominator(_DENOMINATOR)
    found = short if type(factor)(short) == factor else exact
    ratio = sympy.Rational(found.numerator, found.denominator)
    return written(rounded_down(ratio * expression_of(extent)))


def _framed(node: ir.Node, before: Sequence[Extent | None]) -> list[Extent | None] | None:
    """Return the extents after an STFT of constant steps and lengths."""
    import sympy

    steps, lengths = (_numbers(value) for value in (node.inputs[1], [*node.inputs, None, None][3]))
    window = node.inputs[2] if len(node.inputs) > 2 else None
    of_window = (known_extents(window.shape) or [None])[0] if window is not None else None
    length = lengths[0] if lengths else of_window
    if not steps or not steps[0] or not isinstance(length, int) or before[1] is None:
        return None
    frames = rounded_down(sympy.Rational(1, steps[0]) * (expression_of(before[1]) - length)) + 1
    half = length // 2 + 1 if node.attributes.get_int("onesided", 1) else length
    return [before[0], written(frames), half, 2]


def _numbers(value: ir.Value | None) -> list[int] | None:
    import onnx_ir as ir

    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    return None if tensor is None else [int(number) for number in tensor.numpy().reshape(-1)]


@lru_cache(1024)  # sympy needs milliseconds, and bodies are inferred again
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
