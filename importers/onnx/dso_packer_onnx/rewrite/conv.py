"""Convolutions: Conv of images becomes dso.Conv, with the zeros that a Pad added around them."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from ..extent import Extent, bounds_of, pads_of, total
from ..image import kernel_of
from .graph import (
    DSO,
    attribute,
    dims,
    is_factor,
    is_float32,
    is_node,
    new_node,
    optional,
    remove_unused,
    replace,
)
from .window import Window, image_pads, window_of


def fuse_conv(model: ir.Model) -> int:
    """Replace each Conv of float32 images by dso.Conv; return how many.

    dso.Conv has the pads as extents: ``auto_pad`` is resolved with the extents of the image.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "Conv") or not is_float32(node.inputs[0]):
            continue
        bias = optional(node, 2)
        attributes = conv_attributes(node, node.inputs[0], node.inputs[1])
        if attributes is None or not is_factor(node.inputs[1]):
            continue
        inputs = [*node.inputs[:2]] + ([bias] if bias is not None else [])
        new = new_node("Conv", inputs, attributes, like=node.outputs[0], name=node.name, domain=DSO)
        replace(node, [new])
        count += 1
    return count


def conv_attributes(
    node: ir.Node, image: ir.Value | None, weight: ir.Value | None
) -> dict[str, Any] | None:
    """Return the attributes of dso.Conv for a convolution of images.

    None if it is another one: of other than two axes, of open channels, or with an open weight.
    """
    extents, shape = [e for e in dims(weight) or () if isinstance(e, int)], dims(image)
    if len(extents) != 4 or shape is None or 0 in extents:
        return None
    window = window_of(node, extents[2:])
    if window is None or not isinstance(shape[1], int):
        return None
    return attributes_of(window, node.attributes.get_int("group", 1))


def attributes_of(window: Window, group: int) -> dict[str, Any]:
    """Return the attributes of dso.Conv for a window in images, without an activation."""
    return {
        "strides": window.strides,
        "dilations": window.dilations,
        "pads": window.pads,
        "group": group,
        "activation": "",
        "low": 0.0,
        "high": 0.0,
    }


def fuse_pad(model: ir.Model) -> int:
    """Add the zeros of a Pad around images to the pads of the dso.Conv that reads them.

    Returns how many convolutions changed. A Pad that others read too remains for these.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "Conv", domain=DSO):
            continue
        padded = node.inputs[0]
        assert padded is not None
        pad = padded.producer()
        zeros = image_pads(pad)
        if pad is None or zeros is None:
            continue
        dilations = node.attributes.get_ints("dilations") or (1, 1)
        reaches = [(k - 1) * d for k, d in zip(kernel_of(node), dilations, strict=True)] * 2
        sums = [total(pair) for pair in zip(pads_of(node), zeros, strict=True)]
        if not all(
            isinstance(one, int) or _is_in_window(one, reach)
            for one, reach in zip(sums, reaches, strict=True)
        ):
            continue
        node.attributes["pads"] = attribute("pads", sums)
        node.replace_input_with(0, pad.inputs[0])
        remove_unused(pad)
        count += 1
    return count


def _is_in_window(pad: Extent, reach: int) -> bool:
    """Return True if no call has a negative pad, or one that is larger than the window."""
    found = bounds_of(pad)
    return found is not None and found[0] >= 0 and found[1] <= reach
