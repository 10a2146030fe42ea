"""Resize: images of other extents, along any axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import onnx_ir as ir

from ..extent import Extent, product
from ..read.resized import is_separable
from .graph import (
    DSO,
    Dim,
    constant,
    dims,
    is_float32,
    is_node,
    new_node,
    optional,
    replace,
    reshape,
)


class Given(NamedTuple):
    """A scale that the data of a call decides: its place in the input of the scales."""

    element: int


Scale = float | Given | None  # None for the quotient of the extents


def fuse_resize(model: ir.Model) -> int:
    """Replace Resize of float32 by dso.Resize of images, or dso.Resample; return how many.

    The last two axes are resized at once, and each axis before them as the height of images whose
    width are all the axes after it. With ``antialias`` dso.Resample changes one axis after another.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "Resize") or not is_float32(node.inputs[0]):
            continue
        before, after = extents_of(node.inputs[0]), extents_of(node.outputs[0])
        if not before or len(before) != len(after) or not is_separable(node):
            continue
        scales = scales_of(node, before, after)
        if len(before) < 2 or all(scale == 1.0 for scale in scales):
            continue
        is_filtered = node.attributes.get_int("antialias", 0)
        if is_filtered and any(isinstance(scale, Given) for scale in scales):
            continue
        replace(node, _filters(node, scales) if is_filtered else _steps(model, node, scales))
        count += 1
    return count


def extents_of(value: ir.Value | None) -> list[Extent]:
    """Return the shape of a value; empty if its rank is not known."""
    return [one if isinstance(one, int) else str(one.value) for one in dims(value) or ()]


def scales_of(node: ir.Node, before: Sequence[Extent], after: Sequence[Extent]) -> list[Scale]:
    """Return the scale of each axis."""
    rank = len(before)
    axes = [axis % rank for axis in node.attributes.get_ints("axes") or range(rank)]
    scales: list[Scale] = [1.0] * rank
    given = optional(node, 2)
    numbers = [] if given is None else _elements(given)
    for index, axis in enumerate(axes):
        if numbers:
            number = numbers[index]
            scales[axis] = Given(index) if number is None else number
        else:
            scales[axis] = 1.0 if before[axis] == after[axis] else None
    return scales


def _elements(value: ir.Value) -> list[float | None]:
    """Return the elements of a vector, None for one that is computed."""
    known, node = constant(value), value.producer()
    if known is not None:
        return [float(number) for number in known.reshape(-1)]
    if node is not None and is_node(node, "Concat"):
        return [number for part in node.inputs if part is not None for number in _elements(part)]
    return [None] * int((dims(value) or (0,))[0])


def _steps(model: ir.Model, node: ir.Node, scales: Sequence[Scale]) -> list[ir.Node]:
    """Return the nodes for the last two axes, if the last one is resized, and for each other."""
    shape, after = extents_of(node.inputs[0]), extents_of(node.outputs[0])
    pair = len(shape) - 2
    groups = [(pair, pair + 2)] if scales[-1] != 1.0 else [(pair, pair + 1), (pair + 1, pair + 2)]
    groups += [(axis, axis + 1) for axis in reversed(range(pair))]
    value, made = node.inputs[0], []
    assert value is not None
    for begin, end in groups:
        if all(scale == 1.0 for scale in scales[begin:end]):
            continue
        result = [*shape[:begin], *after[begin:end], *shape[end:]]
        images = [_image(extents, begin, end) for extents in (shape, result)]
        attributes = _attributes(node, scales[begin:end])
        if images[0] != shape:
            made.append(reshape(model, value, _dims(images[0])))
            value = made[-1].outputs[0]
        is_given = any(isinstance(scale, Given) for scale in scales[begin:end])
        inputs = [value, *([node.inputs[2]] if is_given else [])]
        made.append(new_node("Resize", inputs, attributes, shape=_dims(images[1]), domain=DSO))
        if images[1] != result:
            made.append(reshape(model, made[-1].outputs[0], _dims(result)))
        value, shape = made[-1].outputs[0], result
    return made


def _filters(node: ir.Node, scales: Sequence[Scale]) -> list[ir.Node]:
    shape, after = extents_of(node.inputs[0]), extents_of(node.outputs[0])
    value, made = node.inputs[0], []
    for axis, scale in enumerate(scales):
        if scale == 1.0:
            continue
        shape[axis] = after[axis]
        attributes = {**_attributes(node, [scale]), "axis": axis}
        made.append(new_node("Resample", [value], attributes, shape=_dims(shape), domain=DSO))
        value = made[-1].outputs[0]
    return made


def _attributes(node: ir.Node, scales: Sequence[Scale]) -> dict[str, Any]:
    attributes = node.attributes
    made: dict[str, Any] = {
        "mode": attributes.get_string("mode", "nearest"),
        "places": attributes.get_string("coordinate_transformation_mode", "half_pixel"),
        "nearest": attributes.get_string("nearest_mode", "round_prefer_floor"),
        "cubic": attributes.get_float("cubic_coeff_a", -0.75),
        "exclude_outside": attributes.get_int("exclude_outside", 0),
    }
    for name, scale in zip(("scale_y", "scale_x"), [*scales, 1.0], strict=False):
        if isinstance(scale, Given):
            made[f"index_of_{name}"] = scale.element
        elif scale is not None:
            made[name] = scale
    return made


def _image(shape: list[Extent], begin: int, end: int) -> list[Extent]:
    """Return the extents of images whose height and width are two axes, or one and what follows."""
    if len(shape) == 4 and (begin, end) == (2, 4) and isinstance(shape[1], int):
        return shape
    width = shape[-1] if end - begin == 2 else product(shape[end:])
    return [product(shape[:begin]), 1, shape[begin], width]


def _dims(extents: Sequence[Extent]) -> list[Dim]:
    return [one if isinstance(one, int) else ir.SymbolicDim(one) for one in extents]
