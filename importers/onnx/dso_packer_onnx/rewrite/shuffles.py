"""DepthToSpace and SpaceToDepth as a Transpose between two Reshapes."""

from __future__ import annotations

import onnx_ir as ir

from .graph import Dim, dims, is_node, new_node, replace, reshape

_TO_SPACE = {"DCR": [0, 3, 4, 1, 5, 2], "CRD": [0, 1, 4, 2, 5, 3]}
_TO_DEPTH = [0, 3, 5, 1, 2, 4]


def expand_shuffles(model: ir.Model) -> int:
    """Replace them; return how many."""
    count = 0
    for node in model.graph:
        if not is_node(node, "DepthToSpace", "SpaceToDepth"):
            continue
        shape, value = dims(node.inputs[0]), node.inputs[0]
        made = dims(node.outputs[0])
        if shape is None or made is None or value is None or len(shape) != 4:
            continue
        size = node.attributes.get_int("blocksize", 1)
        batch, channels, height, width = shape
        if node.op_type == "SpaceToDepth":
            perm = _TO_DEPTH
            parts: list[Dim] = [batch, channels, made[2], size, made[3], size]
        else:
            mode = node.attributes.get_string("mode", "DCR")
            perm = _TO_SPACE[mode or "DCR"]
            inside = [size, size, made[1]] if mode != "CRD" else [made[1], size, size]
            parts = [batch, *inside, height, width]
        assert value.dtype is not None
        before = reshape(model, value, parts)
        turned = [parts[axis] for axis in perm]
        moved = new_node(
            "Transpose", before.outputs, {"perm": perm}, shape=turned, dtype=value.dtype
        )
        after = reshape(model, moved.outputs[0], made)
        replace(node, [before, moved, after])
        count += 1
    return count
