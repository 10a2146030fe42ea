"""Windows of convolutions and pooling: pads as numbers, whatever the model says them by."""

from __future__ import annotations

from typing import Any, NamedTuple

import onnx_ir as ir

from ..extent import Extent, expression_of, pads_of, rounded_up, written
from .graph import DSO, Dim, dims, ints, is_node, optional, scalar


class Window(NamedTuple):
    """A window over images or volumes.

    All are z or y first; pads are before the first element of each axis, then after the last ones.
    """

    kernel: list[int]
    strides: list[int]
    pads: list[Extent]  # an expression, where it follows from an open extent
    dilations: list[int]


def window_of(node: ir.Node, kernel: list[int]) -> Window | None:
    """Return the window of a node with as many spatial axes, or None if it is not a static one.

    ``auto_pad`` and ``ceil_mode`` become pads: with these, the extents of the output follow by
    rounding down.
    """
    attributes = node.attributes
    axes = len(kernel)
    strides = list(attributes.get_ints("strides", None) or [1] * axes)
    dilations = list(attributes.get_ints("dilations", None) or [1] * axes)
    pads: list[Extent] = list(attributes.get_ints("pads", None) or [0] * (2 * axes))
    mode = attributes.get_string("auto_pad", "NOTSET")
    window: Window | None = Window(kernel, strides, pads, dilations)
    if mode == "VALID":
        window = Window(kernel, strides, [0] * (2 * axes), dilations)
    elif mode != "NOTSET" or attributes.get_int("ceil_mode", 0):
        window = _with_pads(node, Window(kernel, strides, pads, dilations), mode)
    if window is None or len(window.pads) != 2 * axes:
        return None
    return None if any(isinstance(pad, int) and pad < 0 for pad in window.pads) else window


def _with_pads(node: ir.Node, window: Window, mode: str) -> Window | None:
    import sympy

    inside, outside = dims(node.inputs[0]), dims(node.outputs[0])
    axes = len(window.kernel)
    if inside is None or outside is None or not len(inside) == len(outside) == 2 + axes:
        return None
    pads = list(window.pads)
    for axis in range(axes):
        extent, result = (_expression(shape[2 + axis]) for shape in (inside, outside))
        step, reach = window.strides[axis], (window.kernel[axis] - 1) * window.dilations[axis] + 1
        needed = (result - 1) * step + reach - extent
        if mode == "NOTSET":
            after = needed - expression_of(pads[axis])
            pads[axes + axis] = written(sympy.Max(expression_of(pads[axes + axis]), after))
            continue
        total = sympy.Max(0, needed)
        less, more = sympy.floor(total / 2), rounded_up(total / 2)
        first, last = (less, more) if mode == "SAME_UPPER" else (more, less)
        pads[axis], pads[axes + axis] = written(first), written(last)
    return window._replace(pads=pads)


def _expression(extent: Dim) -> Any:
    return expression_of(extent if isinstance(extent, int) else str(extent.value))


def image_pads(node: ir.Node | None) -> list[Extent] | None:
    """Return the pads of a node that adds zeros around images only; else None."""
    if node is not None and is_node(node, "Pad", domain=DSO):
        fill, computed = optional(node, 1), pads_of(node)
        is_around = len(computed) == 8 and not any(computed[:2] + computed[4:6])
        is_zero = fill is None or scalar(fill) == 0.0
        return [*computed[2:4], *computed[6:]] if is_around and is_zero else None
    if node is None or not is_node(node, "Pad"):
        return None
    if node.attributes.get_string("mode", "constant") != "constant":
        return None
    shape, pads = dims(node.inputs[0]), ints(node.inputs[1])
    fill = optional(node, 2)
    if shape is None or len(shape) != 4 or pads is None:
        return None
    if fill is not None and scalar(fill) != 0.0:
        return None
    axes = [0, 1, 2, 3]
    if optional(node, 3) is not None:
        given = ints(node.inputs[3])
        if given is None:
            return None
        axes = [axis % 4 for axis in given]
    before, after = [0] * 4, [0] * 4
    for index, axis in enumerate(axes):
        before[axis], after[axis] = pads[index], pads[index + len(axes)]
    if any(before[:2]) or any(after[:2]) or min(before + after) < 0:
        return None
    return [*before[2:], *after[2:]]
