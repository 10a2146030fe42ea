"""Windows of convolutions and pooling: pads as four numbers, whatever the model says them by."""

from __future__ import annotations

from typing import NamedTuple

import onnx_ir as ir

from .graph import dims, ints, is_node, optional, scalar


class Window(NamedTuple):
    """A window over images. All are y first; pads are top, left, bottom, right."""

    kernel: list[int]
    strides: list[int]
    pads: list[int]
    dilations: list[int]


def window_of(node: ir.Node, kernel: list[int]) -> Window | None:
    """Return the window of a node with two spatial axes, or None if it is not a static one.

    ``auto_pad`` and ``ceil_mode`` become pads: with these, the extents of the output follow by
    rounding down. Open extents have such pads where the stride is 1.
    """
    attributes = node.attributes
    if len(kernel) != 2:
        return None
    strides = list(attributes.get_ints("strides", None) or [1, 1])
    dilations = list(attributes.get_ints("dilations", None) or [1, 1])
    pads = list(attributes.get_ints("pads", None) or [0, 0, 0, 0])
    mode = attributes.get_string("auto_pad", "NOTSET")
    window: Window | None = Window(kernel, strides, pads, dilations)
    if mode == "VALID":
        window = Window(kernel, strides, [0, 0, 0, 0], dilations)
    elif mode != "NOTSET" or attributes.get_int("ceil_mode", 0):
        window = _with_pads(node, Window(kernel, strides, pads, dilations), mode)
    if window is None or len(window.pads) != 4 or min(window.pads) < 0:
        return None
    return window


def _with_pads(node: ir.Node, window: Window, mode: str) -> Window | None:
    inside, outside = dims(node.inputs[0]), dims(node.outputs[0])
    if inside is None or outside is None or len(inside) != 4 or len(outside) != 4:
        return None
    pads = list(window.pads)
    for axis in range(2):
        extent, result = inside[2 + axis], outside[2 + axis]
        step, reach = window.strides[axis], (window.kernel[axis] - 1) * window.dilations[axis] + 1
        if isinstance(extent, int) and isinstance(result, int):
            needed = (result - 1) * step + reach - extent
        elif mode != "NOTSET" and step == 1:
            needed = reach - 1
        else:
            return None
        if mode == "NOTSET":
            pads[2 + axis] = max(pads[2 + axis], needed - pads[axis])
            continue
        total = max(0, needed)
        first = total // 2 if mode == "SAME_UPPER" else total - total // 2
        pads[axis], pads[2 + axis] = first, total - first
    return window._replace(pads=pads)


def image_pads(node: ir.Node | None) -> list[int] | None:
    """Return the pads of a Pad node that adds zeros around images only; else None."""
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
