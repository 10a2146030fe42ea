"""Products of 8-bit integers: ONNX's operators for them become dso.LowpMatMul.

dso.LowpMatMul(A, B, bias, residual, added, scale, a_zero, b_zero, zero) computes

    sums = (A - a_zero) @ (B - b_zero) + added            exact, in int32
    value = activation(sums * scale + bias + residual)    in float32

The output is `sums` if it is of int32, `value` if it is of float32, and if it is of 8 bits `value`,
without bias and residual, rounded and limited after `zero` is added. All inputs but the factors
may be missing. The attribute `to` is the type of the output.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from .epilogue import refit
from .graph import (
    DSO,
    Array,
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
    other_input,
    replace,
    same_shape,
)

BYTES = (ir.DataType.INT8, ir.DataType.UINT8)
PLAIN = {"activation": "", "low": 0.0, "high": 0.0}
_PLAIN_PRODUCT = {"trans_a": 0, "trans_b": 0, **PLAIN}


def fuse_matmul_integer(model: ir.Model) -> int:
    """Replace each MatMulInteger of matrices by dso.LowpMatMul; return how many.

    The left factor has one zero; the right one has one, or one for each column.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "MatMulInteger") or not are_matrices(*node.inputs[:2]):
            continue
        zeros = [optional(node, 2), optional(node, 3)]
        if not (is_single(zeros[0]) and is_per_column(zeros[1], node.outputs[0])):
            continue
        a_zero, b_zero = (without_zeros(value) for value in zeros)
        inputs = [*node.inputs[:2], None, None, None, None, a_zero, b_zero]
        replace(node, [lowp_node("LowpMatMul", inputs, _PLAIN_PRODUCT, node)])
        count += 1
    return count


def fuse_qlinear_matmul(model: ir.Model) -> int:
    """Replace each QLinearMatMul with scales of float32 by dso.LowpMatMul; return how many."""
    count = 0
    for node in model.graph:
        if not is_node(node, "QLinearMatMul"):
            continue
        a, a_scale, a_zero, b, b_scale, b_zero, scale, zero = node.inputs
        out = node.outputs[0]
        if not are_matrices(a, b) or out.dtype not in BYTES:
            continue
        if not all(is_single(value) for value in (a_scale, a_zero, scale, zero)):
            continue
        if not (is_per_column(b_scale, out) and is_per_column(b_zero, out)):
            continue
        if not is_float32(a_scale, b_scale, scale):
            continue
        made, factor = _scale(model, node, a_scale, b_scale, scale)
        zeros = [without_zeros(value) for value in (a_zero, b_zero, zero)]
        inputs = [a, b, None, None, None, factor, *zeros]
        replace(node, [*made, lowp_node("LowpMatMul", inputs, _PLAIN_PRODUCT, node)])
        count += 1
    return count


def _scale(
    model: ir.Model, node: ir.Node, a: ir.Value | None, b: ir.Value | None, out: ir.Value | None
) -> tuple[list[ir.Node], ir.Value]:
    """Return the scale of a node's sums, with nodes that compute it unless it is constant."""
    factor = scale_of(a, b, out)
    if factor is not None:
        return [], new_weight(model, f"{node.name}/scale", factor)
    product = new_node("Mul", [a, b], like=b, name=f"{node.name}/product")
    made = new_node("Div", [product.outputs[0], out], like=b, name=f"{node.name}/scale")
    for maker in (product, made):
        maker.outputs[0].name = maker.name
    return [product, made], made.outputs[0]


def fuse_integer_scale(model: ir.Model) -> int:
    """Fuse Cast to float32 and Mul by a scale after dso.LowpMatMul and dso.LowpConv.

    So integers of dynamic scales become float32 again. The scale may be computed: one
    number, or for a product a row of them. Returns how many were fused.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "Mul") or not is_float32(*node.inputs, *node.outputs):
            continue
        for value in node.inputs:
            cast = made_by(value, "Cast")
            source = cast.inputs[0] if cast is not None else None
            made = made_by(source, "LowpMatMul", "LowpConv", domain=DSO)
            if cast is None or made is None or optional(made, 5) is not None:
                continue
            scale = other_input(node, cast.outputs[0])
            if not only_reads(cast, made.outputs[0]) or not only_reads(node, cast.outputs[0]):
                continue
            is_row = made.op_type == "LowpMatMul" and _is_row(scale, made.outputs[0])
            if not (is_single(scale) or is_row) or not same_shape(value, node.outputs[0]):
                continue
            refit(made, node, {5: scale}, to=int(ir.DataType.FLOAT))
            count += 1
            break
    return count


def fuse_quantize(model: ir.Model) -> int:
    """Replace quantisation of elements by one scale by dso nodes; return how many.

    QuantizeLinear and DequantizeLinear between float32 and 8 bits, and DynamicQuantizeLinear.
    """
    count = 0
    for node in model.graph:
        if is_node(node, "DynamicQuantizeLinear"):
            new = ir.Node(DSO, "DynamicQuantize", node.inputs, num_outputs=3, name=node.name)
            _replace_all(node, new)
        elif is_node(node, "QuantizeLinear", "DequantizeLinear") and _is_plain(node):
            kind = node.op_type.removesuffix("Linear")
            inputs = [*node.inputs[:2], without_zeros(optional(node, 2))]
            to = {"to": int(node.outputs[0].dtype or 0)}
            like = node.outputs[0]
            replace(node, [new_node(kind, inputs, to, like=like, name=node.name, domain=DSO)])
        else:
            continue
        count += 1
    return count


def _is_plain(node: ir.Node) -> bool:
    """Return True for one scale of float32, and integers of 8 bits."""
    x, scale, zero = (*node.inputs, None)[:3]
    out = node.outputs[0]
    floats, integers = (x, out) if node.op_type == "QuantizeLinear" else (out, x)
    if not is_float32(floats, scale) or integers is None or integers.dtype not in BYTES:
        return False
    is_rounded = node.attributes.get_int("precision", 0) in (0, int(ir.DataType.FLOAT))
    return is_single(scale) and is_single(zero) and is_rounded


def _replace_all(node: ir.Node, new: ir.Node) -> None:
    """Put a node with as many outputs in the place of another."""
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    for old, value in zip(node.outputs, new.outputs, strict=True):
        value.name, value.type, value.shape = old.name, old.type, old.shape
        old.name = None
    graph.insert_before(node, new)
    for old, value in zip(node.outputs, new.outputs, strict=True):
        for index, output in enumerate(graph.outputs):
            if output is old:
                graph.outputs[index] = value
        old.replace_all_uses_with(value)
    graph.remove(node, safe=True)


def lowp_node(
    kind: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any], last: ir.Node
) -> ir.Node:
    """Make a node of low-precision elements that computes the output of `last`."""
    out = last.outputs[0]
    assert out.dtype is not None
    kept = {**attributes, "to": int(out.dtype)}
    return new_node(kind, inputs, kept, like=out, name=last.name, domain=DSO)


# ---- Values that the kernels can read ----


def are_matrices(*values: ir.Value | None) -> bool:
    """Return True for values of 8 bits with two axes or more."""
    return all(v is not None and v.dtype in BYTES and len(dims(v) or ()) >= 2 for v in values)


def is_single(value: ir.Value | None) -> bool:
    """Return True for one number, or nothing."""
    shape = () if value is None else dims(value)
    return shape is not None and all(extent == 1 for extent in shape)


def is_per_column(value: ir.Value | None, out: ir.Value) -> bool:
    """Return True for one number, or a vector of as many as there are columns, or nothing."""
    shape = () if value is None else dims(value)
    return is_single(value) or (shape is not None and len(shape) == 1 and _is_row(value, out))


def _is_row(value: ir.Value | None, out: ir.Value) -> bool:
    shape, whole = dims(value), dims(out)
    if not shape or not whole or not isinstance(whole[-1], int):
        return False
    return shape[-1] == whole[-1] and all(extent == 1 for extent in shape[:-1])


def without_zeros(value: ir.Value | None) -> ir.Value | None:
    """Return a zero point, or None if it is known to be 0."""
    array = constant(value)
    return None if array is not None and not array.any() else value


def scale_of(a: ir.Value | None, b: ir.Value | None, out: ir.Value | None = None) -> Array | None:
    """Return the scale of sums, (a * b) / out, if all are constants of float32."""
    values = (a, b) if out is None else (a, b, out)
    if not is_float32(*values) or not all(is_constant(value) for value in values):
        return None
    first, second, *last = (constant(value).reshape(-1) for value in values)  # type: ignore[union-attr]
    found: Array = np.asarray(first * second, np.float32)
    return found / last[0] if last else found
