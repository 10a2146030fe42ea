"""Convolutions and pools along three axes: the depths of volumes become images.

A value (batch, channels, depth, height, width) becomes images (batch * depth, channels, height,
width). A window along the depth is an attribute of dso.Conv; a pool of volumes is a pool of images,
then one along the depth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx_ir as ir

from .conv import attributes_of
from .graph import (
    DSO,
    Dim,
    as_extent,
    changed_weight,
    constant,
    dims,
    equal_dims,
    is_constant,
    is_float32,
    is_node,
    new_node,
    only_first_output,
    replace,
    reshape,
    times,
)
from .regions import EACH, rank_of, region
from .transposed import transposed_volume, ways_of
from .window import Window, window_of

_POOLS = ("AveragePool", "GlobalAveragePool", "GlobalMaxPool", "MaxPool")
_SWAPPED = {"perm": [0, 2, 1, 3, 4]}  # channels and depths


def raise_volumes(model: ir.Model) -> int:
    """Make the values of networks along three axes images; return how many operators changed.

    A Transpose and a Reshape are left before and after them. A pool that no convolution is joined
    to has no Transpose: all channels have the same window.
    """
    found = region(model, _is_conv, lambda node: _is_pool(node) or _is_each(node))
    images: dict[ir.Value, ir.Value] = {}
    for node in found:
        _raise(model, node, images)
    pools = [node for node in model.graph if _is_pool(node)]
    for node in pools:
        batch, channels, *extents = dims(node.inputs[0]) or ()
        flat = reshape(model, node.inputs[0], [times(batch, channels), *extents])
        new = [flat, *_pool(model, node, flat.outputs[0], times(batch, channels), 1)]
        replace(node, [*new, reshape(model, new[-1].outputs[0], dims(node.outputs[0]) or ())])
    return len(found) + len(pools)


def _is_conv(node: ir.Node) -> bool:
    if not is_node(node, "Conv", "ConvTranspose") or not _reads_and_writes_volumes(node):
        return False
    if not all(isinstance(extent, int) and extent for extent in dims(node.inputs[1]) or (0,)):
        return False
    found = _window(node) if node.op_type == "Conv" else ways_of(node)
    return rank_of(node.inputs[1]) == 5 and found is not None


def _is_pool(node: ir.Node) -> bool:
    """Return True for a pool; one of a whole volume has a known depth."""
    if not is_node(node, *_POOLS) or not _reads_and_writes_volumes(node):
        return False
    is_known = isinstance((dims(node.inputs[0]) or ())[2], int)
    return only_first_output(node) and (is_known or not node.op_type.startswith("Global"))


def _reads_and_writes_volumes(node: ir.Node) -> bool:
    return all(map(_is_volume, (node.inputs[0], node.outputs[0])))


def _is_volume(value: ir.Value | None) -> bool:
    shape = dims(value)
    return (
        shape is not None
        and len(shape) == 5
        and is_float32(value)
        and isinstance(shape[1], int)
        and all(extent if isinstance(extent, int) else extent.value for extent in shape)
    )


def _window(node: ir.Node) -> Window | None:
    return window_of(node, [int(extent) for extent in (dims(node.inputs[1]) or ())[2:]])


def _is_each(node: ir.Node) -> bool:
    if node.domain or node.op_type not in EACH or len(node.outputs) != 1:
        return False
    return (
        _is_volume(node.outputs[0])
        and node.attributes.get_int("axis", 1) == 1
        and not node.op_type.endswith("Linear")  # quantised
        and not any(is_node(reader, "Conv") and at > 0 for reader, at in node.outputs[0].uses())
        and all(_fits(value, node.outputs[0]) for value in node.inputs if value is not None)
    )


def _fits(value: ir.Value, out: ir.Value) -> bool:
    """Return True if an input has the depths of the output, or one for all."""
    shape, whole = dims(value), dims(out) or ()
    if shape is None or (1 < len(shape) < 5 and not is_constant(value)):
        return False
    (batch, _, depth), rank = (1, 1, 1, 1, *shape)[-5:][:3], len(shape)
    if rank == 5 and equal_dims((batch, depth), (whole[0], whole[2])):
        return True
    return rank < 2 or batch == depth == 1


def _raise(model: ir.Model, node: ir.Node, images: dict[ir.Value, ir.Value]) -> None:
    new: list[ir.Node] = []
    inputs = [
        value if value is None or rank_of(value) < 2 else _images(model, value, new, images)
        for value in node.inputs[: 1 if node.op_type.startswith("Conv") else None]
    ]
    shape = dims(node.outputs[0]) or ()
    if node.op_type == "Conv":
        new += _conv(model, node, inputs[0])
    elif node.op_type == "ConvTranspose":
        new += transposed_volume(model, node, inputs[0])
    elif node.op_type in _POOLS:
        new += _pool(model, node, inputs[0], shape[0], shape[1])
        new.append(reshape(model, new[-1].outputs[0], _as_images(shape)))
    else:
        dtype = node.outputs[0].dtype or ir.DataType.FLOAT
        how = {"shape": _as_images(shape), "dtype": dtype, "name": node.name}
        new.append(new_node(node.op_type, inputs, node.attributes, **how))
    made = new[-1].outputs[0]
    batch, channels, depth, *extents = shape
    new.append(reshape(model, made, [batch, depth, channels, *extents]))
    new.append(new_node("Transpose", new[-1].outputs, _SWAPPED, like=node.outputs[0]))
    images[new[-1].outputs[0]] = made
    replace(node, new)


def _as_images(shape: Sequence[Dim]) -> list[Dim]:
    batch, channels, depth, *extents = shape
    return [times(batch, depth), channels, *extents]


def _images(
    model: ir.Model, value: ir.Value, new: list[ir.Node], images: dict[ir.Value, ir.Value]
) -> ir.Value:
    """Return a value as images; nodes that make them are added to `new`."""
    if value not in images:
        shape, array = [1, 1, 1, *(dims(value) or ())][-5:], constant(value)
        if array is not None and shape[0] == shape[2] == 1:
            flat = array.reshape([int(extent) for extent in _as_images(shape)])
            images[value] = changed_weight(model, value, flat, "without a depth")
            return images[value]
        batch, channels, depth, *extents = shape
        swapped = [batch, depth, channels, *extents]
        dtype = value.dtype or ir.DataType.FLOAT
        new.append(new_node("Transpose", [value], _SWAPPED, shape=swapped, dtype=dtype))
        new.append(reshape(model, new[-1].outputs[0], _as_images(shape)))
        images[value] = new[-1].outputs[0]
    return images[value]


def _conv(model: ir.Model, node: ir.Node, image: ir.Value) -> list[ir.Node]:
    """Make a convolution of images; the depth of its window is so many times the rows."""
    window, weight, new = _window(node), node.inputs[1], []
    array = constant(weight)
    assert window is not None
    assert weight is not None
    (kernel, *_), (stride, *strides), pads, (dilation, *dilations) = window
    outputs, channels, depths, height, width = (int(e) for e in dims(weight) or ())
    rows = [outputs, channels, depths * height, width]
    if array is None:
        new.append(reshape(model, weight, rows))
        weight = new[0].outputs[0]
    else:
        weight = changed_weight(model, weight, array.reshape(rows), "with its depths as rows")
    of_image = Window([], strides, [*pads[1:3], *pads[4:]], dilations)
    attributes = attributes_of(of_image, node.attributes.get_int("group", 1))
    before, after = (dims(value) or () for value in (node.inputs[0], node.outputs[0]))
    extents = [as_extent(shape[2]) for shape in (before, after)]
    depth = [*extents, kernel, stride, dilation, pads[0]]
    if depth != [extents[0], extents[0], 1, 1, dilation, 0]:
        attributes["depth"] = depth
    inputs, shape = [image, weight, *node.inputs[2:]], _as_images(after)
    return [*new, new_node("Conv", inputs, attributes, shape=shape, name=node.name, domain=DSO)]


def _pool(
    model: ir.Model, node: ir.Node, image: ir.Value, volumes: Dim, channels: Dim
) -> list[ir.Node]:
    """Make a pool of images, and one of the rows that the images of a volume become."""
    before, after = (dims(value) or () for value in (node.inputs[0], node.outputs[0]))
    shape = [*(dims(image) or ())[:2], *after[3:]]
    of_image, of_depth = _pool_attributes(node, [1, 2]), _pool_attributes(node, [0])
    kind, new = node.op_type.removeprefix("Global"), []
    if kind != node.op_type:
        of_depth = {"kernel_shape": [before[2], 1]}
    if kind != node.op_type or not _is_one(of_image) or _is_one(of_depth):
        new.append(new_node(node.op_type, [image], of_image, shape=shape, name=node.name))
    if not _is_one(of_depth):
        row = times(times(channels, after[3]), after[4])
        rows = reshape(model, new[0].outputs[0] if new else image, [volumes, 1, before[2], row])
        extents = [volumes, 1, after[2], row]
        new += [rows, new_node(kind, rows.outputs, of_depth, shape=extents)]
    return new


def _pool_attributes(node: ir.Node, axes: list[int]) -> dict[str, Any]:
    """Return the attributes of a pool along two axes, or along one of images of one column."""
    made: dict[str, Any] = dict(node.attributes)
    for name, number in {"kernel_shape": 1, "strides": 1, "dilations": 1, "pads": 0}.items():
        if name in made:
            numbers = made[name].as_ints()
            halves = [numbers[:3], numbers[3:]] if name == "pads" else [numbers]
            made[name] = [
                item for half in halves for item in ([half[axis] for axis in axes] + [number])[:2]
            ]
    return made


def _is_one(attributes: dict[str, Any]) -> bool:
    """Return True if a pool shows its input."""
    return (
        attributes["kernel_shape"] == [1, 1]
        and attributes.get("strides", [1, 1]) == [1, 1]
        and not any(attributes.get("pads", []))
    )
