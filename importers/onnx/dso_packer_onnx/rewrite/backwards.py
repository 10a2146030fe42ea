"""Slices that run backwards, by Gather: the generator of C code has forward ones only."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from .graph import Dim, dims, ints, is_node, new_node, new_weight, optional, replace


def gather_backwards(model: ir.Model) -> int:
    """Replace each Slice with a negative step and constant bounds by Gather; return how many.

    Each axis that runs backwards becomes one Gather with the indices as a constant. The other axes
    remain one Slice.
    """
    count = 0
    for node in model.graph:
        bounds = _bounds(node)
        shape = dims(node.inputs[0]) if bounds else None
        if not bounds or shape is None or not any(step < 0 for _, _, _, step in bounds):
            continue
        back = [bound for bound in bounds if bound[3] < 0]
        if not all(isinstance(shape[axis], int) for axis, *_ in back):
            continue
        replace(node, _nodes(model, node, list(shape), back, bounds))
        count += 1
    return count


def _bounds(node: ir.Node) -> list[tuple[int, int, int, int]]:
    """Return (axis, start, end, step) of each axis of a Slice with constant bounds."""
    if not is_node(node, "Slice"):
        return []
    starts, ends = ints(node.inputs[1]), ints(node.inputs[2])
    shape = dims(node.inputs[0])
    if starts is None or ends is None or shape is None:
        return []
    axes = list(range(len(starts))) if optional(node, 3) is None else ints(optional(node, 3))
    steps = [1] * len(starts) if optional(node, 4) is None else ints(optional(node, 4))
    if axes is None or steps is None:
        return []
    return list(zip([axis % len(shape) for axis in axes], starts, ends, steps, strict=True))


def _nodes(
    model: ir.Model,
    node: ir.Node,
    shape: list[Dim],
    back: list[tuple[int, int, int, int]],
    bounds: list[tuple[int, int, int, int]],
) -> list[ir.Node]:
    nodes: list[ir.Node] = []
    value = node.inputs[0]
    assert value is not None
    assert value.dtype is not None
    for axis, start, end, step in back:
        extent = shape[axis]
        assert isinstance(extent, int)
        chosen = range(*slice(start, end if end >= -extent else None, step).indices(extent))
        indices = new_weight(model, f"{node.name}.indices", np.array(chosen, np.int64))
        shape[axis] = len(chosen)
        gather = new_node(
            "Gather", [value, indices], {"axis": axis}, shape=shape, dtype=value.dtype
        )
        nodes.append(gather)
        value = gather.outputs[0]
    rest = [bound for bound in bounds if bound[3] > 0]
    if rest:
        axes, starts, ends, steps = (
            new_weight(model, f"{node.name}.{name}", np.array(part, np.int64))
            for name, part in zip(
                ("axes", "starts", "ends", "steps"), zip(*rest, strict=True), strict=True
            )
        )
        forward = [value, starts, ends, axes, steps]
        nodes.append(new_node("Slice", forward, like=node.outputs[0], name=node.name))
    return nodes
