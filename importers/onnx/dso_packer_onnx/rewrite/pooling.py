"""Pools of images: MaxPool, AveragePool, global pooling and means become dso.Pooling."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from .graph import (
    DSO,
    Dim,
    dims,
    ints,
    is_float32,
    is_node,
    new_node,
    new_weight,
    only_first_output,
    optional,
    replace,
)
from .window import Window, window_of

_KIND = {
    "MaxPool": "max",
    "AveragePool": "average",
    "GlobalMaxPool": "max",
    "GlobalAveragePool": "average",
    "ReduceMax": "max",
    "ReduceMean": "average",
}


def fuse_pooling(model: ir.Model) -> int:
    """Replace pooling of float32 images by dso.Pooling; return how many.

    A global pooling, and a ReduceMean or ReduceMax over height and width, is a window of the whole
    image, which has no ``kernel``. Without ``keepdims`` a Reshape follows it. With ``ceil_mode``
    the pads become greater; an average that counts its pads cannot have that, and remains.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, *_KIND) or not is_float32(node.inputs[0]):
            continue
        shape = dims(node.inputs[0])
        if shape is None or len(shape) != 4 or not isinstance(shape[1], int):
            continue
        found = _window(node, shape)
        if found is None or not only_first_output(node):
            continue
        new = _pooling(node, shape, found)
        if len(dims(node.outputs[0]) or ()) != 4:
            new = [*new, _flat(model, node, new[0])]
        replace(node, new)
        count += 1
    return count


def _window(node: ir.Node, shape: tuple[Dim, ...]) -> Window | None:
    if node.op_type.startswith("Reduce"):
        axes = ints(optional(node, 1))
        if axes is None or sorted(axis % 4 for axis in axes) != [2, 3]:
            return None
    if not node.op_type.endswith("Pool") or node.op_type.startswith("Global"):
        return Window([], [1, 1], [0, 0, 0, 0], [1, 1])
    attributes = node.attributes
    counted = attributes.get_int("count_include_pad", 0)
    if attributes.get_int("ceil_mode", 0) and node.op_type == "AveragePool" and counted:
        return None
    return window_of(node, list(attributes.get_ints("kernel_shape", [])))


def _pooling(node: ir.Node, shape: tuple[Dim, ...], window: Window) -> list[ir.Node]:
    attributes = {
        "kind": _KIND[node.op_type],
        **({"kernel": window.kernel} if window.kernel else {}),
        "strides": window.strides,
        "pads": window.pads,
        "dilations": window.dilations,
        "count_include_pad": node.attributes.get_int("count_include_pad", 0),
    }
    output = dims(node.outputs[0])
    extents = output if output is not None and len(output) == 4 else (*shape[:2], 1, 1)
    return [
        new_node("Pooling", [node.inputs[0]], attributes, shape=extents, name=node.name, domain=DSO)
    ]


def _flat(model: ir.Model, node: ir.Node, pooling: ir.Node) -> ir.Node:
    batch, channels = (dims(node.inputs[0]) or ())[:2]
    target = [batch if isinstance(batch, int) else -1, channels]
    shape = new_weight(model, f"{node.name}.shape", np.array(target, np.int64))
    return new_node("Reshape", [pooling.outputs[0], shape], like=node.outputs[0])
