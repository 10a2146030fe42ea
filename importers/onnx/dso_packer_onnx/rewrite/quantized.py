"""Graphs between QuantizeLinear and DequantizeLinear, computed with their integers.

Tools for quantisation write DequantizeLinear before each operator and QuantizeLinear after it. A
product or a convolution of dequantised factors becomes dso.LowpMatMul or dso.LowpConv, and the
QuantizeLinear after it its last step. This comes before constants are folded, which would make
float32 of the weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import onnx_ir as ir

from .constants import fold_quantised
from .epilogue import refit
from .graph import (
    DSO,
    Array,
    constant,
    dims,
    is_float32,
    is_node,
    made_by,
    new_weight,
    only_reads,
    optional,
    replace,
)
from .integer import BYTES, PLAIN, are_matrices, is_single, lowp_node, scale_of, without_zeros
from .integer_conv import lowp_attributes
from .record import record_fold

_MOVES = ("Reshape", "Transpose", "Flatten", "Squeeze", "Unsqueeze", "Slice", "Gather", "Expand")


class _Factor(NamedTuple):
    """A dequantised value: integers, their scale and zero, and the axis that has many of these."""

    value: ir.Value
    scale: ir.Value
    zero: ir.Value | None
    axis: int
    is_transposed: bool = False

    @classmethod
    def of(cls, value: ir.Value | None) -> _Factor | None:
        """Return what DequantizeLinear made of integers of 8 bits; None if it is another value."""
        node = made_by(value, "DequantizeLinear")
        if node is None or node.inputs[0] is None or node.inputs[0].dtype not in BYTES:
            return None
        scale, rank = node.inputs[1], len(dims(node.inputs[0]) or ())
        if not is_float32(scale, node.outputs[0]) or constant(scale) is None:
            return None
        if scale is None or node.attributes.get_int("block_size", 0) or not rank:
            return None
        axis = node.attributes.get_int("axis", 1) % rank if not is_single(scale) else -1
        return cls(node.inputs[0], scale, optional(node, 2), axis)

    @classmethod
    def of_right(cls, value: ir.Value | None) -> _Factor | None:
        """Return a right factor, also through a Transpose of its last two axes."""
        node = made_by(value, "Transpose")
        if node is None:
            return cls.of(value)
        found, rank = cls.of(node.inputs[0]), len(dims(value) or ())
        perm = list(node.attributes.get_ints("perm", []) or range(rank)[::-1])
        if found is None or perm != [*range(rank - 2), rank - 1, rank - 2]:
            return None
        return found._replace(is_transposed=True)

    def has_one_per(self, axis: int) -> bool:
        """Return True for one scale, or one for each element of an axis."""
        return self.axis in (-1, axis % len(dims(self.value) or (0,)))


def fuse_dequantized(model: ir.Model) -> int:
    """Compute Conv, MatMul and Gemm of dequantised factors with integers; return how many.

    The left factor has one constant scale; the right one has one, or one for each output.
    """
    fold_quantised(model)
    count = 0
    for node in model.graph:
        if is_node(node, "Conv"):
            new = _conv(model, node)
        elif is_node(node, "MatMul", "Gemm"):
            new = _product(model, node)
        else:
            continue
        if new is not None:
            replace(node, [new])
            count += 1
    return count


def _conv(model: ir.Model, node: ir.Node) -> ir.Node | None:
    a, b = _Factor.of(node.inputs[0]), _Factor.of(node.inputs[1])
    if a is None or b is None or a.axis != -1 or not b.has_one_per(0):
        return None
    attributes = lowp_attributes(node, a.value, b.value)
    inputs = _inputs(model, node, a, b)
    if attributes is None or inputs is None or not is_float32(node.outputs[0]):
        return None
    return lowp_node("LowpConv", inputs, attributes, node)


def _product(model: ir.Model, node: ir.Node) -> ir.Node | None:
    a, b = _Factor.of(node.inputs[0]), _Factor.of_right(node.inputs[1])
    if a is None or b is None or a.axis != -1 or not is_float32(node.outputs[0]):
        return None
    is_gemm = node.op_type == "Gemm"
    flags = [node.attributes.get_int(f"trans{f}", 0) if is_gemm else 0 for f in "AB"]
    factors = [node.attributes.get_float(name, 1.0) for name in ("alpha", "beta")]
    flags[1] ^= int(b.is_transposed)
    if not are_matrices(a.value, b.value) or factors != [1.0, 1.0]:
        return None
    if not b.has_one_per(-2 if flags[1] else -1):
        return None
    inputs = _inputs(model, node, a, b)
    if inputs is None:
        return None
    attributes = {"trans_a": flags[0], "trans_b": flags[1], **PLAIN}
    return lowp_node("LowpMatMul", inputs, attributes, node)


def _inputs(model: ir.Model, node: ir.Node, a: _Factor, b: _Factor) -> list[ir.Value | None] | None:
    """Return the inputs of the new node; None if its bias cannot be one."""
    factor = scale_of(a.scale, b.scale)
    assert factor is not None
    bias, added = None, None
    given = optional(node, 2)
    if given is not None:
        found = _bias(given, factor)
        if found is None:
            return None
        name = str(given.name)
        if found.dtype == np.int32:
            added = new_weight(model, f"{node.name}/bias", found)
        else:
            bias = new_weight(model, f"{node.name}/bias", found)
        record_fold(model, ir.Value(name=name), added or bias, f"the bias of {node.name!r}")
    scale = new_weight(model, f"{node.name}/scale", factor)
    zeros = [without_zeros(value) for value in (a.zero, b.zero)]
    return [a.value, b.value, bias, None, added, scale, *zeros]


def _bias(value: ir.Value, factor: Array) -> Array | None:
    """Return a constant vector: int32 in units of the sums if it is quantised so, or float32."""
    array = constant(value)
    if array is not None:
        row = array.reshape(-1)
        return row if row.size == array.shape[-1] and is_float32(value) else None
    node = made_by(value, "DequantizeLinear")
    stored = constant(node.inputs[0]) if node is not None else None
    scale = constant(node.inputs[1]) if node is not None else None
    if node is None or stored is None or scale is None or stored.ndim != 1:
        return None
    if without_zeros(optional(node, 2)) is not None or not is_float32(value):
        return None
    if stored.dtype == np.int32 and np.allclose(scale.reshape(-1), factor, rtol=1e-5, atol=0):
        return stored
    return np.asarray(stored * scale.reshape(-1), np.float32)


def fuse_quantized_result(model: ir.Model) -> int:
    """Make QuantizeLinear the last step of the sums before it; return how many were fused.

    The sums are of dso.LowpMatMul or dso.LowpConv with constant scales, no residual, and no
    activation but ReLU or Clip.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "QuantizeLinear") or node.outputs[0].dtype not in BYTES:
            continue
        made = made_by(node.inputs[0], "LowpMatMul", "LowpConv", domain=DSO)
        step, zero = node.inputs[1], optional(node, 2)
        if made is None or not only_reads(node, made.outputs[0]) or not is_single(step):
            continue
        activation = made.attributes.get_string("activation", "")
        if optional(made, 3) is not None or activation not in ("", "relu", "clip"):
            continue
        units = _units(made, step)
        if units is None or not is_single(zero):
            continue
        factor, whole, steps = units
        inputs: dict[int, ir.Value | None] = {2: None, 4: None, 8: without_zeros(zero)}
        if whole.any():
            inputs[4] = new_weight(model, f"{made.name}/bias", whole)
        inputs[5] = new_weight(model, f"{made.name}/scale", factor)
        low, high = (made.attributes.get_float(end, 0.0) / steps for end in ("low", "high"))
        to = int(node.outputs[0].dtype or 0)
        refit(made, node, inputs, low=low, high=high, to=to)
        count += 1
    return count


def _units(made: ir.Node, step: ir.Value | None) -> tuple[Array, Array, float] | None:
    """Return a sum's scale in units of a result's step, its whole bias in int32, and that step."""
    scale, size = constant(optional(made, 5)), constant(step)
    if scale is None or size is None or not is_float32(step):
        return None
    steps = np.float32(size.reshape(()))
    added: Array = np.zeros(1)
    for index, unit in ((2, scale.astype(np.float64)), (4, np.ones(1))):
        if optional(made, index) is not None:
            array = constant(optional(made, index))
            if array is None:
                return None
            added = added + np.rint(array / unit)
    limits = np.iinfo(np.int32)
    whole = np.clip(added, limits.min, limits.max).astype(np.int32)
    return np.asarray(scale / steps, np.float32), whole, float(steps)


def move_integers(model: ir.Model) -> int:
    """Move integers instead of the numbers that they stand for; return how many nodes changed.

    Reshape, Transpose and their like between DequantizeLinear and QuantizeLinear of one scale.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "QuantizeLinear"):
            continue
        move = made_by(node.inputs[0], *_MOVES)
        source = _Factor.of(move.inputs[0]) if move is not None else None
        if move is None or source is None or source.axis != -1:
            continue
        if not only_reads(node, move.outputs[0]) or not _is_inverse(node, source):
            continue
        out = node.outputs[0]
        copied = ir.Node(
            "", move.op_type, [source.value, *move.inputs[1:]], move.attributes.values(),
            name=move.name,
        )  # fmt: skip
        copied.outputs[0].type, copied.outputs[0].shape = out.type, out.shape
        replace(node, [copied])
        count += 1
    return count


def _is_inverse(node: ir.Node, source: _Factor) -> bool:
    """Return True if QuantizeLinear undoes what made the numbers."""
    scales = constant(source.scale), constant(node.inputs[1])
    zeros = without_zeros(source.zero), without_zeros(optional(node, 2))
    if any(scale is None for scale in scales) or node.outputs[0].dtype != source.value.dtype:
        return False
    if not np.array_equal(*(np.ravel(scale) for scale in scales)):  # type: ignore[arg-type]
        return False
    if zeros[0] is zeros[1]:
        return True
    arrays = [constant(zero) for zero in zeros]
    return all(array is not None for array in arrays) and np.array_equal(
        *(np.ravel(array) for array in arrays)  # type: ignore[arg-type]
    )
