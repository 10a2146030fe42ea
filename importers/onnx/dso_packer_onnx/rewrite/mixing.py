"""Products over few channels that are not the last axis: convolutions of one pixel."""

from __future__ import annotations

import onnx_ir as ir

from .graph import (
    changed_weight,
    constant,
    is_float32,
    is_node,
    made_by,
    new_node,
    only_use,
    other_input,
    replace,
)

_MOST = 16  # channels of a product that is not worth two transposes
_LAST, _FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def mix_channels(model: ir.Model) -> int:
    """Replace Transpose, MatMul by a weight, Add and Transpose by a Conv; return how many.

    The first Transpose makes the channels of (batch, channels, rows, columns) the last axis, the
    second one makes them the second axis again, as attention does that mixes its heads.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "MatMul"):
            continue
        before, weight = made_by(node.inputs[0], "Transpose"), constant(node.inputs[1])
        if (
            before is None
            or tuple(before.attributes.get_ints("perm", ())) != _LAST
            or weight is None
        ):
            continue
        if weight.ndim != 2 or max(weight.shape) > _MOST or not is_float32(*node.inputs):
            continue
        end = only_use(node.outputs[0])
        bias = None
        if is_node(end, "Add"):
            assert end is not None
            bias = other_input(end, node.outputs[0])
            found = constant(bias)
            if found is None or found.shape != weight.shape[1:]:
                continue
            end = only_use(end.outputs[0])
        if end is None or not is_node(end, "Transpose"):
            continue
        if tuple(end.attributes.get_ints("perm", ())) != _FIRST:
            continue
        assert node.inputs[1] is not None
        why = "turned, and a window of one pixel"
        window = changed_weight(model, node.inputs[1], weight.T[:, :, None, None], why)
        inputs = [before.inputs[0], window, *([bias] if bias is not None else [])]
        replace(end, [new_node("Conv", inputs, like=end.outputs[0], name=node.name)])
        count += 1
    return count
