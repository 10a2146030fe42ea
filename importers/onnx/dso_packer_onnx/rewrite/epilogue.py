"""Bias, residual and activation, computed with the sums of a product or a convolution.

out = activation(sum + bias + residual), in this order, for dso.Conv and dso.MatMul, and for
dso.LowpConv and dso.LowpMatMul with results of float32.
"""

from __future__ import annotations

import math

import numpy as np
import onnx_ir as ir

from .graph import (
    DSO,
    changed_weight,
    constant,
    dims,
    is_float32,
    is_node,
    made_by,
    new_node,
    new_weight,
    only_reads,
    optional,
    other_input,
    replace,
    same_shape,
    scalar,
)
from .record import record_fold

SUMS = ("Conv", "MatMul", "LowpConv", "LowpMatMul")


def fuse_bias(model: ir.Model) -> int:
    """Make a vector that is added to each sum of dso.Conv or dso.MatMul its bias.

    The vector has an element for each column or output channel. If it is a constant, a bias that
    exists is added to it. Returns how many Add and Sub nodes were fused.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "Add", "Sub") or not is_float32(node.outputs[0]):
            continue
        for index, value in enumerate(node.inputs):
            made = _open_sum(value)
            if made is None or not only_reads(node, made.outputs[0]):
                continue
            if node.op_type == "Sub" and index == 1:
                continue
            bias = _bias(model, node, made, node.inputs[1 - index])
            if bias is not None and same_shape(made.outputs[0], node.outputs[0]):
                refit(made, node, {2: bias})
                count += 1
                break
    return count


def _open_sum(value: ir.Value | None) -> ir.Node | None:
    """Return the sum that computes a value, if it has no activation yet."""
    made = made_by(value, *SUMS, domain=DSO)
    return None if made is None or made.attributes.get_string("activation", "") else made


def _bias(model: ir.Model, node: ir.Node, made: ir.Node, added: ir.Value | None) -> ir.Value | None:
    shape, output = dims(added), dims(made.outputs[0])
    if added is None or shape is None or output is None or not is_float32(added):
        return None
    axis = 1 if made.op_type.endswith("Conv") else len(output) - 1
    extent = output[axis]
    if not isinstance(extent, int) or not all(isinstance(d, int) for d in shape):
        return None
    place = axis - len(output) + len(shape)  # of the axis, in the shape of the vector
    single = math.prod(int(d) for d in shape) == 1
    if not single and (
        place < 0 or shape != (*(1,) * place, extent, *(1,) * (len(shape) - place - 1))
    ):
        return None
    array, old = constant(added), optional(made, 2)
    if array is None:
        plain = old is None and node.op_type == "Add" and shape == (extent,)
        return added if plain and made.op_type.endswith("MatMul") else None
    row = np.broadcast_to(array.reshape(-1), (extent,))
    row = -row if node.op_type == "Sub" else row
    if old is not None:
        before = constant(old)
        if before is None:
            return None
        record_fold(model, added, old, f"added to the bias of {made.name!r}")
        return changed_weight(
            model, old, before + row, f"the bias of {made.name!r}, with {added.name!r}"
        )
    if row.shape == array.shape and node.op_type == "Add":
        return added
    bias = new_weight(model, str(added.name), row)
    record_fold(model, added, bias, f"the bias of {made.name!r}")
    return bias


def refit(
    made: ir.Node, last: ir.Node, inputs: dict[int, ir.Value | None], **attributes: object
) -> None:
    """Put a copy of a sum with more inputs or attributes in the place of the last node."""
    values = list(made.inputs)
    for index, value in inputs.items():
        values += [None] * (index + 1 - len(values))
        values[index] = value
    new = new_node(
        made.op_type,
        values,
        {**made.attributes, **attributes},
        like=last.outputs[0],
        name=made.name,
        domain=DSO,
    )
    replace(last, [new])


def fuse_residual(model: ir.Model) -> int:
    """Make the other addend of a dso.Conv or dso.MatMul its residual; return how many.

    Both have the same shape. If both addends are such sums, the later one is fused, so that few
    values wait for it.
    """
    count = 0
    order = {node: index for index, node in enumerate(model.graph)}
    for node in model.graph:
        if not is_node(node, "Add") or not is_float32(node.outputs[0]):
            continue
        sums = [made for value in node.inputs if (made := _residual_sum(node, value)) is not None]
        if not sums:
            continue
        made = max(sums, key=lambda item: order.get(item, len(order)))
        other = other_input(node, made.outputs[0])
        assert other is not None
        refit(made, node, {3: other})
        count += 1
    return count


def _residual_sum(node: ir.Node, value: ir.Value | None) -> ir.Node | None:
    """Return the sum that makes an addend of a node, if the other one can be its residual."""
    made = _open_sum(value)
    if value is None or made is None or optional(made, 3) is not None:
        return None
    other = other_input(node, value)
    alone = only_reads(node, value) and other is not value
    return made if alone and is_float32(other) and same_shape(value, other) else None


def fuse_activation(model: ir.Model) -> int:
    """Fuse Relu, Clip with constant limits and Gelu after dso.Conv and dso.MatMul.

    Returns how many were fused. Clip between 0 and infinity is "relu".
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "Relu", "Clip", "Gelu") or not is_float32(node.outputs[0]):
            continue
        made, found = _open_sum(node.inputs[0]), _activation(node)
        if made is None or found is None or not only_reads(node, made.outputs[0]):
            continue
        refit(made, node, {}, **found)
        count += 1
    return count


def _activation(node: ir.Node) -> dict[str, object] | None:
    if node.op_type == "Relu":
        return {"activation": "relu"}
    if node.op_type == "Gelu":
        tanh = node.attributes.get_string("approximate", "none") == "tanh"
        return {"activation": "gelu_tanh" if tanh else "gelu"}
    limits = [-math.inf, math.inf]
    for index in (0, 1):
        given = optional(node, 1 + index)
        if given is not None:
            number = scalar(given)
            if number is None:
                return None
            limits[index] = number
    if not limits[0] <= limits[1]:
        return None
    if limits == [0.0, math.inf]:
        return {"activation": "relu"}
    return {"activation": "clip", "low": limits[0], "high": limits[1]}
