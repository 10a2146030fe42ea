"""Convolutions of 8-bit integers: ONNX's operators for them become dso.LowpConv.

dso.LowpConv has the inputs of dso.LowpMatMul, with an image and a weight as factors, and the
attributes of dso.Conv. A convolution of volumes is one of images, which have the depths of a window
as channels: a volume (batch, channels, depth, height, width) becomes (batch * result depths,
channels * kernel depths, height, width).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import onnx_ir as ir

from ..extent import Extent, total
from .conv import conv_attributes
from .graph import (
    DSO,
    Dim,
    as_extent,
    changed_weight,
    constant,
    dims,
    is_constant,
    is_node,
    new_node,
    new_weight,
    optional,
    replace,
    reshape,
    times,
)
from .integer import BYTES, is_single, lowp_node, scale_of, without_zeros
from .window import Window, window_of

_WEIGHTS = {"ConvInteger": 1, "QLinearConv": 3}  # the input; the zero of the volume is input 2
_SWAPPED = {"perm": [0, 2, 1, 3, 4]}  # channels and depths


def raise_integer_volumes(model: ir.Model) -> int:
    """Make each integer convolution of volumes one of images; return how many."""
    count = 0
    for node in model.graph:
        if not is_node(node, *_WEIGHTS):
            continue
        weight, shape = node.inputs[_WEIGHTS[node.op_type]], dims(node.inputs[0])
        array = constant(weight)
        if weight is None or array is None or array.ndim != 5 or 0 in array.shape or shape is None:
            continue
        window = window_of(node, [*array.shape[2:]])
        if window is None or not isinstance(shape[1], int) or not is_single(optional(node, 2)):
            continue
        made = [*_depths(model, node, window)]
        outputs, channels, depth, *kernel = array.shape
        images = array.reshape(outputs, channels * depth, *kernel)
        inputs = [made[-1].outputs[0], *node.inputs[1:]]
        inputs[_WEIGHTS[node.op_type]] = changed_weight(model, weight, images, "depths as channels")
        batch, _, depths, *extents = dims(node.outputs[0]) or ()
        made.append(
            new_node(
                node.op_type,
                inputs,
                _image_attributes(node),
                shape=[times(batch, depths), outputs, *extents],
                dtype=node.outputs[0].dtype,
                name=node.name,
            )
        )
        made.append(reshape(model, made[-1].outputs[0], [batch, depths, outputs, *extents]))
        made.append(new_node("Transpose", made[-1].outputs, _SWAPPED, like=node.outputs[0]))
        replace(node, made)
        count += 1
    return count


def _depths(model: ir.Model, node: ir.Node, window: Window) -> Iterator[ir.Node]:
    """Make the nodes after which the depths of each window are channels."""
    volume, fill = node.inputs[0], optional(node, 2)
    assert volume is not None
    (batch, channels, depth, *extents), dtype = dims(volume) or (), volume.dtype
    results = (dims(node.outputs[0]) or ())[2]
    kernel, stride, dilation = window.kernel[0], window.strides[0], window.dilations[0]
    pads: list[Extent] = [0, window.pads[0], 0, 0, 0, 0, window.pads[3], 0, 0, 0]
    swapped = [batch, depth, channels, *extents]
    last = new_node("Transpose", [volume], _SWAPPED, shape=swapped, dtype=dtype)
    yield last
    if any(pads):
        inputs = [*last.outputs, *([] if fill is None else [fill])]
        swapped[1] = _dim(total([as_extent(depth), pads[1], pads[6]]))
        last = new_node("Pad", inputs, {"pads": pads}, shape=swapped, dtype=dtype, domain=DSO)
        yield last
    parts = []
    for k in range(kernel):
        end = (k + 1 - kernel) * dilation or np.iinfo(np.int64).max
        bounds = (
            new_weight(model, f"{node.name}.depths", np.array([number], np.int64))
            for number in (k * dilation, end, 1, stride)
        )
        shape = [batch, results, channels, *extents]
        cut = new_node("Slice", [*last.outputs, *bounds], shape=shape, dtype=dtype)
        parts.append(reshape(model, cut.outputs[0], [times(batch, results), channels, 1, *extents]))
        yield from (cut, parts[-1])
    values = [part.outputs[0] for part in parts]
    shape = [times(batch, results), channels, kernel, *extents]
    joined = new_node("Concat", values, {"axis": 2}, shape=shape, dtype=dtype)
    yield joined
    yield reshape(model, joined.outputs[0], [shape[0], times(channels, kernel), *extents])


def _dim(extent: Extent) -> Dim:
    return extent if isinstance(extent, int) else ir.SymbolicDim(extent)


def _image_attributes(node: ir.Node) -> dict[str, object]:
    """Return the attributes of a convolution without the first of three axes."""
    made: dict[str, object] = dict(node.attributes)
    for name in ("kernel_shape", "strides", "dilations", "pads"):
        if name in node.attributes:
            numbers: Sequence[int] = node.attributes[name].as_ints()
            made[name] = [n for i, n in enumerate(numbers) if i % 3]
    return made


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
