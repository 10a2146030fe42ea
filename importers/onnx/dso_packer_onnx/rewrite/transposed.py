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
from .conv import attributes_of
from .graph import (
    DSO,
    Array,
    Dim,
    as_extent,
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
    reshape,
    times,
)
from .record import record_fold
from .window import Window

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


_NO_DEPTH = _Part([[0]], 1, (0, 0), 0)  # of images


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
        ways = ways_of(node) if len(dims(node.inputs[0]) or ()) == 4 else None
        if ways is not None:
            replace(node, _nodes(model, node, node.inputs[0], [_NO_DEPTH], ways))
            count += 1
    return count


def transposed_volume(model: ir.Model, node: ir.Node, images: ir.Value | None) -> list[ir.Node]:
    """Make the nodes in the place of a transposed convolution of volumes, which are `images`.

    The parts of the depth are joined as channels. A Reshape makes images of them, and a Slice cuts
    off those at both ends.
    """
    depth, *of_image = ways_of(node) or [_Way([_NO_DEPTH], (0, 0))]
    most = max(part.more for part in depth.parts)
    parts = [
        part._replace(more=most, pads=(part.pads[0], part.pads[1] + most - part.more))
        for part in depth.parts
    ]
    nodes = _nodes(model, node, images, parts, of_image)
    batch, outputs, extent, *extents = dims(node.outputs[0]) or ()
    whole = total((as_extent(extent), *depth.crop))
    every = whole if isinstance(whole, int) else ir.SymbolicDim(whole)
    pixels = times(times(outputs, extents[0]), extents[1])
    nodes.append(reshape(model, nodes[-1].outputs[0], [batch, every, pixels]))
    if any(depth.crop):
        first, last = depth.crop
        bounds = [
            new_weight(model, f"{node.name}.{name}", np.array([number], np.int64))
            for name, number in (("from", first), ("to", -last or 2**62), ("axis", 1))
        ]
        cut = [batch, extent, pixels]
        nodes.append(new_node("Slice", [nodes[-1].outputs[0], *bounds], shape=cut))
    nodes.append(reshape(model, nodes[-1].outputs[0], [times(batch, extent), outputs, *extents]))
    return nodes


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


def ways_of(node: ir.Node) -> list[_Way] | None:
    """Return how to compute each axis of images or volumes, or None if one cannot be."""
    image, bias = dims(node.inputs[0]), optional(node, 2)
    if not is_constant(node.inputs[1]) or (bias is not None and not is_constant(bias)):
        return None
    if image is None or not isinstance(image[1], int):
        return None
    if any(extent == 0 for extent in (*image, *(dims(node.outputs[0]) or (0,)))):
        return None
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
    """Return the axes of images or volumes, or None if one of them cannot be computed."""
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

    before, after, taps = as_extent(image[2 + i]), as_extent(result[2 + i]), int(kernel[2 + i])
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


def _nodes(
    model: ir.Model, node: ir.Node, image: ir.Value | None, depths: list[_Part], ways: list[_Way]
) -> list[ir.Node]:
    """Make the nodes in the place of a transposed convolution; parts of the depth are channels."""
    nodes: list[ir.Node] = []
    window = [sum(len(part.taps) for part in way.parts) for way in ways]
    crop = [*(way.crop[0] for way in ways), *(way.crop[1] for way in ways)]
    extents = (dims(node.outputs[0]) or ())[-2:]
    made = []
    for depth in depths:
        parts = product(*(way.parts for way in ways))
        convs = [_conv(model, node, image, depth, *part) for part in parts]
        nodes += convs
        if prod(window) > 1 or any(crop):
            batch, channels = (dims(convs[0].outputs[0]) or ())[:2]
            each = int(channels) * len(convs) // prod(window)
            values, how = [conv.outputs[0] for conv in convs], {"window": window, "crop": crop}
            shape = [batch, each, *extents]
            nodes.append(new_node("Interleave", values, how, shape=shape, domain=DSO))
        made.append(nodes[-1].outputs[0])
    if len(made) > 1:
        shapes = [dims(value) or () for value in made]
        channels = sum(int(shape[1]) for shape in shapes)
        shape = [shapes[0][0], channels, *extents]
        nodes.append(new_node("Concat", made, {"axis": 1}, shape=shape))
    return nodes


def _conv(
    model: ir.Model,
    node: ir.Node,
    image: ir.Value | None,
    depth: _Part,
    rows: _Part,
    columns: _Part,
) -> ir.Node:
    """Make the convolution of some phases; its channels are (phase y, x, z, output)."""
    group = node.attributes.get_int("group", 1)
    inputs: list[ir.Value | None] = [image]
    for source, array, why in _weights(node, group, depth, rows, columns):
        inputs.append(new_weight(model, f"{source.name}.taps", array))
        record_fold(model, source, inputs[-1], why)
    pads: list[Extent] = [rows.pads[0], columns.pads[0], rows.pads[1], columns.pads[1]]
    window = Window([], [1, 1], pads, [rows.dilation, columns.dilation])
    attributes = attributes_of(window, group)
    batch, _, height, width = dims(image) or ()
    channels = (dims(inputs[1]) or ())[0]
    if depth is not _NO_DEPTH:
        batch, _, before, *_ = dims(node.inputs[0]) or ()
        after = _more(before, depth)
        of_window = [len(depth.taps[0]), 1, depth.dilation, depth.pads[0]]
        attributes["depth"], batch = (
            [as_extent(before), as_extent(after), *of_window],
            times(batch, after),
        )
    shape = (batch, channels, _more(height, rows), _more(width, columns))
    return new_node("Conv", inputs, attributes, shape=shape, name=node.name, domain=DSO)


def _more(extent: Dim, part: _Part) -> Dim:
    made = total((as_extent(extent), part.more))
    return made if isinstance(made, int) else ir.SymbolicDim(made)


def _weights(node: ir.Node, group: int, *parts: _Part) -> list[tuple[ir.Value, Array, str]]:
    """Return the weight and the bias of a convolution, and why the model's are not stored."""
    weight, source, bias = constant(node.inputs[1]), node.inputs[1], optional(node, 2)
    assert weight is not None
    volume = weight.reshape(*weight.shape[:2], -1, *weight.shape[-2:])
    zeros = np.pad(volume, [(0, 0), (0, 0), *[(0, 1)] * 3])  # a tap of -1 is the last one
    z, y, x = (np.array(part.taps) for part in parts)
    # channel, output, then z, y and x: phase and place
    taken = zeros[:, :, z[:, :, None, None, None, None], y[:, :, None, None], x]
    channels, outputs = weight.shape[0] // group, weight.shape[1]
    split = taken.reshape(group, channels, outputs, *z.shape, *y.shape, *x.shape)
    ordered = split.transpose(5, 7, 3, 0, 2, 1, 4, 6, 8).reshape(
        -1, channels, z.shape[1] * y.shape[1], x.shape[1]
    )
    why = "the taps of a transposed convolution, by phases"
    made = [(source, np.ascontiguousarray(ordered), why)]
    if bias is not None:
        array = constant(bias)
        assert array is not None
        made.append((bias, np.tile(array, len(z) * len(y) * len(x)), "repeated for each phase"))
    return made
