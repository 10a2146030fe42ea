"""A scale and a shift for each channel, after a sum: folded into its weights.

Batch normalization in inference is such a pair. Computed in double precision, rounded once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from .graph import (
    DSO,
    Array,
    changed_weight,
    constant,
    dims,
    is_constant,
    is_float32,
    is_node,
    new_node,
    new_weight,
    only_first_output,
    only_reads,
    optional,
    replace,
    same_shape,
)
from .record import record_fold

_SUMS = ("Conv", "ConvTranspose", "MatMul")


class _Affine(NamedTuple):
    """For each channel x * scale + shift, in float64."""

    scale: Array
    shift: Array


def fold_batch_norm(model: ir.Model) -> int:
    """Fold BatchNormalization into the weights of the sum before it; return how many.

    The sum is a Conv, ConvTranspose, dso.Conv or dso.MatMul that only the normalization reads.
    After any other operator, a Mul and an Add take the place of the normalization.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "BatchNormalization") or not only_first_output(node):
            continue
        if node.attributes.get_int("training_mode", 0) or not is_float32(*node.inputs):
            continue
        if not all(is_constant(value) for value in node.inputs[1:]):
            continue
        value, factors = node.inputs[0], node.inputs[1:]
        affine = _batch_norm(node)
        if _can_fold(value, node):
            _fold(model, value.producer(), affine, f"the batch normalization {node.name!r}")
            _record(model, node, factors, value.producer())
            replace(node, [], value=value)
            count += 1
        elif (shape := dims(value)) is not None:
            _spell_out(model, node, affine, len(shape))
            count += 1
    return count


def _batch_norm(node: ir.Node) -> _Affine:
    gamma, beta, mean, variance = (
        np.asarray(constant(value), np.float64) for value in node.inputs[1:5]
    )
    scale = gamma / np.sqrt(variance + node.attributes.get_float("epsilon", 1e-5))
    return _Affine(scale, beta - mean * scale)


def _record(model: ir.Model, node: ir.Node, values: list[ir.Value], made: ir.Node) -> None:
    for value in values:
        record_fold(model, value, made.inputs[1], f"part of {node.name!r}")


def _spell_out(model: ir.Model, node: ir.Node, affine: _Affine, rank: int) -> None:
    """Replace a normalization by x * scale + shift."""
    extents = (-1, *(1,) * (rank - 2))
    gamma, beta = node.inputs[1:3]
    made = []
    value = node.inputs[0]
    for kind, array, source in (("Mul", affine.scale, gamma), ("Add", affine.shift, beta)):
        factor = new_weight(model, str(source.name), array.astype(np.float32).reshape(extents))
        record_fold(model, source, factor, f"with the statistics of {node.name!r}")
        made.append(new_node(kind, [value, factor], like=node.outputs[0]))
        value = made[-1].outputs[0]
    for source in node.inputs[3:5]:
        record_fold(model, source, made[0].inputs[1], f"part of {node.name!r}")
    replace(node, made)


def fold_scale(model: ir.Model) -> int:
    """Fold a Mul or Div by one constant for each channel into the weights of the sum before it.

    Returns how many nodes were folded. `fuse_bias` does the same for an Add.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "Mul", "Div") or not is_float32(*node.inputs):
            continue
        for index, value in enumerate(node.inputs):
            factor = node.inputs[1 - index]
            if node.op_type == "Div" and index == 1:
                continue
            if not is_constant(factor) or not same_shape(value, node.outputs[0]):
                continue
            if not _can_fold(value, node):
                continue
            scale = _per_channel(value, factor)
            if scale is None or (node.op_type == "Div" and not np.all(scale)):
                continue
            scale = 1.0 / scale if node.op_type == "Div" else scale
            made = value.producer()
            _fold(model, made, _Affine(scale, np.zeros_like(scale)), f"{node.name!r}")
            record_fold(model, factor, made.inputs[1], f"part of {node.name!r}")
            replace(node, [], value=value)
            count += 1
            break
    return count


def _per_channel(value: ir.Value, factor: ir.Value) -> Array | None:
    """Return a constant as one float64 for each channel, or None if it is another shape."""
    made = value.producer()
    output, array = dims(value), constant(factor)
    if made is None or output is None or array is None:
        return None
    axis = len(output) - 1 if made.op_type == "MatMul" else 1
    extent = output[axis]
    if not isinstance(extent, int):
        return None
    row = np.asarray(array, np.float64)
    if row.size == 1:
        return np.broadcast_to(row.reshape(-1), (extent,))
    place = axis - len(output) + row.ndim
    if place < 0 or row.size != extent or row.shape[place] != extent:
        return None
    return row.reshape(-1)


def _can_fold(value: ir.Value, reader: ir.Node) -> bool:
    """Return True if a value is a sum with constant weights, which only `reader` reads."""
    made = value.producer()
    if made is None or not only_reads(reader, value) or made.op_type not in _SUMS:
        return False
    if not is_constant(made.inputs[1]) or not is_float32(*made.inputs[:2]):
        return False
    if optional(made, 3) is not None:
        return False
    bias = optional(made, 2)
    if bias is not None and not is_constant(bias):
        return False
    if is_node(made, "Conv", "ConvTranspose"):
        return True
    if not is_node(made, "Conv", "MatMul", domain=DSO):
        return False
    weight = dims(made.inputs[1]) or ()
    plain = made.op_type == "Conv" or len(weight) == 2
    return plain and not made.attributes.get_string("activation", "")


def _fold(model: ir.Model, made: ir.Node, affine: _Affine, why: str) -> None:
    """Scale the weights of a sum, and scale and shift its bias."""
    weight, bias = made.inputs[1], optional(made, 2)
    array = constant(weight)
    assert array is not None
    scaled = (array * _along(made, array, affine.scale)).astype(np.float32)
    made.replace_input_with(1, changed_weight(model, weight, scaled, f"scaled by {why}"))
    before = 0.0 if bias is None else np.asarray(constant(bias), np.float64)
    after = before * affine.scale + affine.shift
    if bias is None and not np.any(after):
        return
    row = after.astype(np.float32)
    if bias is not None:
        changed = changed_weight(model, bias, row, f"with {why}")
    else:
        changed = new_weight(model, _bias_name(str(weight.name)), row)
    made.resize_inputs(max(3, len(made.inputs)))
    made.replace_input_with(2, changed)


def _bias_name(weight: str) -> str:
    stem, dot, last = weight.rpartition(".")
    return f"{stem}{dot}bias" if last == "weight" else f"{weight}.bias"


def _along(made: ir.Node, weight: Array, scale: Array) -> Array:
    """Return the scale in a shape that multiplies the right axis of the weights."""
    if made.op_type == "MatMul":
        return scale[:, None] if made.attributes.get_int("trans_b", 0) else scale
    rest = (1,) * (weight.ndim - 2)
    if made.op_type == "Conv":
        return scale.reshape(-1, 1, *rest)
    groups = made.attributes.get_int("group", 1)
    each = scale.reshape(groups, 1, -1)
    shape = (groups, weight.shape[0] // groups, weight.shape[1])
    return np.broadcast_to(each, shape).reshape(weight.shape[:2] + rest)
