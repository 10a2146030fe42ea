"""The extents of a Slice by constant numbers, as ONNX defines them for any length of an axis.

onnx_shape_inference takes such numbers to be inside of an open axis, and knows no negative steps.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from ..extent import Extent, expression_of, written

if TYPE_CHECKING:
    import onnx_ir as ir

_FAR = (1 << 31) - 1  # a number from here on is the end of any axis
_VERSION = 13  # the latest of Slice


@cache
def register_slice() -> None:
    """Make onnx_shape_inference use `_count` for the axes whose numbers are constants."""
    import onnx_ir as ir
    from onnx_shape_inference import registry

    registry.collect()
    theirs = registry.get("", "Slice", _VERSION - 1)
    assert theirs is not None

    def infer(ctx: Any, node: ir.Node) -> None:
        theirs(ctx, node)
        made, shape = node.outputs[0], node.inputs[0].shape
        if shape is None or made.shape is None:
            return
        starts, ends, axes, steps = (_numbers(value) for value in [*node.inputs, None, None][1:5])
        extents: list[Any] = [*made.shape]
        for index, axis in enumerate(axes or range(len(starts or ()))):
            before = shape[axis] if isinstance(shape[axis], int) else shape[axis].value
            if starts and ends and before is not None and (steps or len(node.inputs) < 5):
                step = steps[index] if steps else 1
                extents[axis] = _count(before, starts[index], ends[index], step)
        made.shape = ir.Shape(extents)

    registry.register("", "Slice", since_version=_VERSION)(infer)


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
    return written(sympy.Max(0, sympy.ceiling(sympy.sympify(distance) / abs(step))))


def _place(length: Any, number: int, step: int) -> Any:
    """Return where a number points to: from the end if it is negative, and limited to the axis."""
    import sympy

    least, greatest = (0, length) if step > 0 else (-1, length - 1)
    if number >= _FAR:
        return greatest
    if number <= -_FAR:
        return sympy.Integer(least)
    return sympy.Max(least, length + number) if number < 0 else sympy.Min(greatest, number)
