"""Transposed convolutions: as convolutions whose results are placed between each other.

Along one axis, pixel i of the image adds x[i] * w[k] to pixel i * stride + k * dilation - pad of
the result. So pixels of the result whose places have the same remainder by the stride, a phase,
are a convolution of stride 1 by some of the taps, and dso.Interleave puts the phases in their
places.

Either one dso.Conv computes all phases as channels, by the window of all of them, with zeros for
taps that a phase does not have, or each phase has its own dso.Conv.
"""

from __future__ import annotations

from itertools import product
from math import gcd, prod
from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from packer.operators import BLOCK

from ..extent import Extent, expression_of, total, written
from .graph import (
    DSO,
    Array,
    Dim,
    constant,
    dims,
    is_constant,
    is_float32,
    is_node,
    made_by,
    new_node,
    new_weight,
    only_reads,
    optional,
    replace,
)
from .record import record_fold

_MANY = 1 << 20  # pixels along an open axis: so many that those at the edges do not count
_WORTH = 1.15  # one convolution has fewer pixels to place, and reads the image once


class _Axis(NamedTuple):
    """A transposed convolution along one axis."""

    taps: int
    stride: int
    dilation: int
    pad: int  # before the first pixel
    surplus: int  # extent of the result less `stride` times that of the image
    extent: int  # of the image, or _MANY


class _Part(NamedTuple):
    """A convolution of stride 1 along one axis, for one or more phases."""

    taps: list[list[int]]  # for each phase, the tap at each place of the window; -1: zero
    dilation: int
    pads: tuple[int, int]
    more: int  # extent of the result less that of the image


class _Way(NamedTuple):
    """How an axis is computed: parts with all phases in order, and pixels cut off at both ends."""

    parts: list[_Part]
    crop: tuple[int, int]


def fuse_transposed_conv(model: ir.Model) -> int:
    """Replace each ConvTranspose of float32 with constant weights by convolutions; return how many.

    One whose extents do not follow from the extents of its input remains.
    """
    count = 0
    for node in list(model.graph):
        if not is_node(node, "ConvTranspose") or not is_float32(node.inputs[0], node.inputs[1]):
            continue
        image, bias = dims(node.inputs[0]), optional(node, 2)
        if not is_constant(node.inputs[1]) or (bias is not None and not is_constant(bias)):
            continue
        if image is None or len(image) != 4 or not isinstance(image[1], int):
            continue
        if any(extent == 0 for extent in (*image, *(dims(node.outputs[0]) or (0,)))):
            continue
        ways = _ways(node)
        if ways is not None:
            replace(node, _nodes(model, node, ways))
            count += 1
    return count


def move_activations(model: ir.Model) -> int:
    """Apply Relu, Clip and Gelu to the inputs of dso.Interleave; return how many were moved.

    There a convolution does it.
    """
    count = 0
    for node in list(model.graph):
        if not is_node(node, "Relu", "Clip", "Gelu"):
            continue
        placed = made_by(node.inputs[0], "Interleave", domain=DSO)
        if placed is None or not only_reads(node, placed.outputs[0]):
            continue
        rest, how = node.inputs[1:], node.attributes
        nodes = [new_node(node.op_type, [v, *rest], how, like=v) for v in placed.inputs]
        values = [made.outputs[0] for made in nodes]
        like = node.outputs[0]
        nodes.append(new_node("Interleave", values, placed.attributes, like=like, domain=DSO))
        replace(node, nodes)
        count += 1
    return count


def _ways(node: ir.Node) -> list[_Way] | None:
    """Return how to compute both axes of images, or None if they cannot be."""
    axes = _axes(node)
    if axes is None:
        return None
    common, separate = [_in_common(axis) for axis in axes], [_separately(axis) for axis in axes]
    is_grouped = node.attributes.get_int("group", 1) > 1  # channels are then in another order
    outputs = int((dims(node.inputs[1]) or ())[1])
    is_worth = _work(axes, common, outputs) <= _WORTH * _work(axes, separate, outputs)
    return common if is_worth and not is_grouped else separate


def _work(axes: list[_Axis], ways: list[_Way], outputs: int) -> int:
    """Return how many products one channel takes; kernels compute whole blocks of outputs."""
    work = 0
    for parts in product(*(way.parts for way in ways)):
        pixels = prod(axis.extent + part.more for axis, part in zip(axes, parts, strict=True))
        taps = prod(len(part.taps[0]) for part in parts)
        work += -(-prod(len(part.taps) for part in parts) * outputs // BLOCK) * taps * pixels
    return work


def _axes(node: ir.Node) -> list[_Axis] | None:
    """Return both axes of images, or None if one of them cannot be computed."""
    image, kernel, result = _shapes(node)
    attributes = node.attributes
    is_same = attributes.get_string("auto_pad", "NOTSET").startswith("SAME")
    is_padded = any(attributes.get_ints("output_padding") or [])
    if not len(image) == len(kernel) == len(result):
        return None
    if is_same and is_padded and "output_shape" not in attributes:
        return None  # ONNX and its runtimes do not agree on the extents
    found = [_axis(node, i) for i in range(len(image) - 2)]
    axes = [axis for axis in found if axis is not None]
    return axes if len(axes) == len(found) else None


def _shapes(node: ir.Node) -> list[tuple[Dim, ...]]:
    """Return the shapes of image, weight and result."""
    return [dims(value) or () for value in (*node.inputs[:2], node.outputs[0])]


def _axis(node: ir.Node, i: int) -> _Axis | None:
    """Return spatial axis i, or None if its extent does not follow from that of the image."""
    image, kernel, result = _shapes(node)

    def number(name: str, default: int) -> int:
        given = node.attributes.get_ints(name)
        return int(given[i]) if given else default

    before, after, taps = _extent(image[2 + i]), _extent(result[2 + i]), int(kernel[2 + i])
    stride, dilation = number("strides", 1), number("dilations", 1)
    reach = (taps - 1) * dilation + 1
    surplus = written(expression_of(after) - stride * expression_of(before))
    if not isinstance(surplus, int):
        return None
    mode = node.attributes.get_string("auto_pad", "NOTSET")
    if mode.startswith("SAME") or "output_shape" in node.attributes:
        pad = _pad(max(reach - stride + number("output_padding", 0) - surplus, 0), mode)
    else:
        pad = number("pads", 0) if mode == "NOTSET" else 0
    if before == 1 and stride < reach:  # any stride is the same: one without overlap
        surplus += stride - reach
        stride = reach
    return _Axis(taps, stride, dilation, pad, surplus, before if isinstance(before, int) else _MANY)


def _pad(pads: int, mode: str) -> int:
    """Return how many of the pads of an axis are before its first pixel."""
    return pads // 2 if mode == "SAME_UPPER" else pads - pads // 2


def _extent(extent: Dim) -> Extent:
    return extent if isinstance(extent, int) else str(extent.value)


def _in_common(axis: _Axis) -> _Way:
    """Compute all phases by one window; place q * stride + r is pixel q of phase r."""
    offsets = [k * axis.dilation // axis.stride for k in range(axis.taps)]  # before pixel q
    high, step = offsets[-1], gcd(*offsets) or 1
    first = min(axis.pad // axis.stride, high)  # q of the first pixel
    crop = axis.pad - first * axis.stride
    more = max((axis.pad + axis.surplus - 1) // axis.stride + 1 - first, -first)
    taps = [
        [_tap(axis, offset * axis.stride + phase) for offset in range(high, -1, -step)]
        for phase in range(axis.stride)
    ]
    part = _Part(taps, step, (high - first, more + first), more)
    return _Way([part], (crop, axis.stride * more - crop - axis.surplus))


def _tap(axis: _Axis, distance: int) -> int:
    """Return the tap at a distance, or -1."""
    tap, rest = divmod(distance, axis.dilation)
    return tap if rest == 0 and tap < axis.taps else -1


def _separately(axis: _Axis) -> _Way:
    """Compute each phase by a window of its taps; the phase of the first pixel is first."""
    parts = []
    for phase in range(axis.stride):
        first, rest = divmod(phase + axis.pad, axis.stride)
        taps = [k for k in range(axis.taps) if k * axis.dilation % axis.stride == rest][::-1]
        offsets = [k * axis.dilation // axis.stride for k in taps]
        step = offsets[0] - offsets[1] if len(taps) > 1 else 1
        high, low = (offsets[0], offsets[-1]) if taps else (first - 1, first)
        zeros = max(-((high - first) // step), 0)  # taps in place of pads that are negative
        more = max(-((phase - axis.surplus) // axis.stride), low - first, 1 - axis.extent)
        pads = (high + zeros * step - first, more + first - low)
        parts.append(_Part([[-1] * zeros + taps], step, pads, more))
    most = max(part.more for part in parts)
    return _Way(parts, (0, axis.stride * most - axis.surplus))


def _nodes(model: ir.Model, node: ir.Node, ways: list[_Way]) -> list[ir.Node]:
    """Make the nodes in the place of a transposed convolution."""
    nodes = [_conv(model, node, *parts) for parts in product(*(way.parts for way in ways))]
    window = [sum(len(part.taps) for part in way.parts) for way in ways]
    crop = [*(way.crop[0] for way in ways), *(way.crop[1] for way in ways)]
    if prod(window) > 1 or any(crop):
        attributes = {"window": window, "crop": crop}
        values = [conv.outputs[0] for conv in nodes]
        like = node.outputs[0]
        nodes.append(new_node("Interleave", values, attributes, like=like, domain=DSO))
    return nodes


def _conv(model: ir.Model, node: ir.Node, rows: _Part, columns: _Part) -> ir.Node:
    """Make the convolution of some phases; its channels are (phase y, phase x, output)."""
    group = node.attributes.get_int("group", 1)
    inputs = [node.inputs[0]]
    for source, array, why in _weights(node, group, rows, columns):
        inputs.append(new_weight(model, f"{source.name}.taps", array))
        record_fold(model, source, inputs[-1], why)
    attributes = {
        "strides": [1, 1],
        "dilations": [rows.dilation, columns.dilation],
        "pads": [rows.pads[0], columns.pads[0], rows.pads[1], columns.pads[1]],
        "group": group,
        "activation": "",
        "low": 0.0,
        "high": 0.0,
    }
    batch, _, height, width = dims(inputs[0]) or ()
    channels = (dims(inputs[1]) or ())[0]
    shape = (batch, channels, _more(height, rows), _more(width, columns))
    return new_node("Conv", inputs, attributes, shape=shape, name=node.name, domain=DSO)


def _more(extent: Dim, part: _Part) -> Dim:
    made = total((_extent(extent), part.more))
    return made if isinstance(made, int) else ir.SymbolicDim(made)


def _weights(
    node: ir.Node, group: int, rows: _Part, columns: _Part
) -> list[tuple[ir.Value, Array, str]]:
    """Return the weight and the bias of a convolution, and why the model's are not stored."""
    weight, source, bias = constant(node.inputs[1]), node.inputs[1], optional(node, 2)
    assert weight is not None
    zeros = np.pad(weight, ((0, 0), (0, 0), (0, 1), (0, 1)))  # a tap of -1 is the last one
    y, x = np.array(rows.taps), np.array(columns.taps)
    taken = zeros[:, :, y[:, :, None, None], x]  # channel, output, then y and x: phase and place
    channels, outputs = weight.shape[0] // group, weight.shape[1]
    split = taken.reshape(group, channels, outputs, *y.shape, *x.shape)
    ordered = split.transpose(3, 5, 0, 2, 1, 4, 6).reshape(-1, channels, y.shape[1], x.shape[1])
    why = "the taps of a transposed convolution, by phases"
    made = [(source, np.ascontiguousarray(ordered), why)]
    if bias is not None:
        array = constant(bias)
        assert array is not None
        made.append((bias, np.tile(array, len(y) * len(x)), "repeated for each phase"))
    return made
