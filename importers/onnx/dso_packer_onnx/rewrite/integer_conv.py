"""Convolutions of 8-bit integers: ONNX's operators for them become dso.LowpConv.

dso.LowpConv has the inputs of dso.LowpMatMul, with an image and a weight as factors, and the
attributes of dso.Conv.
"""

from __future__ import annotations

import onnx_ir as ir

from .conv import conv_attributes
from .graph import constant, dims, is_constant, is_node, new_weight, optional, replace
from .integer import BYTES, is_single, lowp_node, scale_of, without_zeros


def fuse_conv_integer(model: ir.Model) -> int:
    """Replace each ConvInteger of images with constant weights by dso.LowpConv.

    Returns how many. The image has one zero; the weight one, or one for each output channel.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "ConvInteger"):
            continue
        attributes = lowp_attributes(node, node.inputs[0], node.inputs[1])
        zeros = [optional(node, 2), optional(node, 3)]
        is_known = is_single(zeros[0]) and is_per_output(zeros[1], node.inputs[1])
        if attributes is None or not is_known:
            continue
        a_zero, b_zero = (without_zeros(value) for value in zeros)
        inputs = [*node.inputs[:2], None, None, None, None, a_zero, b_zero]
        replace(node, [lowp_node("LowpConv", inputs, attributes, node)])
        count += 1
    return count


def fuse_qlinear_conv(model: ir.Model) -> int:
    """Replace each QLinearConv with constant weights and scales by dso.LowpConv.

    Returns how many. The bias is added to the sums in int32.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "QLinearConv"):
            continue
        x, x_scale, x_zero, w, w_scale, w_zero, scale, zero = node.inputs[:8]
        bias = optional(node, 8)
        if not all(is_single(value) for value in (x_scale, x_zero, scale, zero)):
            continue
        attributes = lowp_attributes(node, x, w)
        factor = scale_of(x_scale, w_scale, scale)
        if attributes is None or factor is None or node.outputs[0].dtype not in BYTES:
            continue
        if not (is_per_output(w_scale, w) and is_per_output(w_zero, w)):
            continue
        weight = new_weight(model, f"{node.name}/scale", factor)
        zeros = [without_zeros(value) for value in (x_zero, w_zero, zero)]
        inputs = [x, w, None, None, bias, weight, *zeros]
        replace(node, [lowp_node("LowpConv", inputs, attributes, node)])
        count += 1
    return count


def lowp_attributes(
    node: ir.Node, x: ir.Value | None, weight: ir.Value | None
) -> dict[str, object] | None:
    """Return the attributes of dso.LowpConv, or None if its kernel does not fit."""
    if x is None or weight is None or x.dtype not in BYTES or weight.dtype not in BYTES:
        return None
    return conv_attributes(node, x, weight) if is_constant(weight) else None


def is_per_output(value: ir.Value | None, weight: ir.Value | None) -> bool:
    """Return True for one number, or a constant vector of one for each output, or nothing."""
    if is_single(value):
        return True
    array, extents = constant(value), dims(weight)
    return array is not None and extents is not None and array.shape == (extents[0],)
