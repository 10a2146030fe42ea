"""Transposed convolutions without overlap, which make larger images."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from .graph import (
    DSO,
    constant,
    dims,
    is_float32,
    is_node,
    new_node,
    new_weight,
    optional,
    replace,
)
from .record import record_fold


def fuse_transposed_conv(model: ir.Model) -> int:
    """Replace each ConvTranspose whose windows do not overlap by a 1 x 1 convolution.

    The convolution computes all pixels of a window as channels, and dso.Interleave puts them in
    their places. Its weight has the axes (window y, window x, output) first.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "ConvTranspose") or not is_float32(node.inputs[0], node.inputs[1]):
            continue
        x, weight, bias = node.inputs[0], constant(node.inputs[1]), optional(node, 2)
        image, after = dims(x), dims(node.outputs[0])
        if weight is None or weight.ndim != 4 or image is None or after is None:
            continue
        window = list(weight.shape[2:])
        added = constant(bias) if bias is not None else None
        if not _is_without_overlap(node, window) or (bias is not None and added is None):
            continue
        replace(node, _as_conv(model, node, weight, added, window))
        count += 1
    return count


def _is_without_overlap(node: ir.Node, window: list[int]) -> bool:
    attributes = node.attributes
    return (
        list(attributes.get_ints("strides") or [1, 1]) == window
        and not any(attributes.get_ints("pads") or [])
        and not any(attributes.get_ints("output_padding") or [])
        and all(step == 1 for step in attributes.get_ints("dilations") or [])
        and attributes.get_int("group", 1) == 1
        and attributes.get_string("auto_pad", "NOTSET") in ("NOTSET", "VALID")
        and "output_shape" not in attributes
    )


def _as_conv(
    model: ir.Model,
    node: ir.Node,
    weight: np.ndarray[tuple[int, ...], np.dtype[np.float32]],
    bias: np.ndarray[tuple[int, ...], np.dtype[np.float32]] | None,
    window: list[int],
) -> list[ir.Node]:
    channels, outputs, *_ = weight.shape
    taps = window[0] * window[1]
    rows = np.ascontiguousarray(weight.transpose(2, 3, 1, 0)).reshape(-1, channels, 1, 1)
    source = node.inputs[1]
    assert source is not None
    new_value = new_weight(model, f"{source.name}.taps", rows)
    record_fold(model, source, new_value, "the taps of a transposed convolution became outputs")
    inputs = [node.inputs[0], new_value]
    if bias is not None:
        repeated = new_weight(model, f"{node.inputs[2].name}.taps", np.tile(bias, taps))
        record_fold(model, node.inputs[2], repeated, "repeated for each tap")
        inputs.append(repeated)
    batch, _, height, width = dims(node.inputs[0]) or ()
    attributes = {
        "strides": [1, 1],
        "dilations": [1, 1],
        "pads": [0, 0, 0, 0],
        "group": 1,
        "activation": "",
        "low": 0.0,
        "high": 0.0,
    }
    conv = new_node(
        "Conv",
        inputs,
        attributes,
        shape=(batch, outputs * taps, height, width),
        name=node.name,
        domain=DSO,
    )
    places = new_node(
        "Interleave", [conv.outputs[0]], {"window": window}, like=node.outputs[0], domain=DSO
    )
    return [conv, places]
