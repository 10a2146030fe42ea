"""Products of bfloat16: MatMul and Gemm become dso.LowpMatMul, whose sums are float32."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from .epilogue import refit
from .graph import (
    DSO,
    Array,
    constant,
    dims,
    is_node,
    made_by,
    new_weight,
    only_reads,
    optional,
    other_input,
    replace,
    same_shape,
)
from .integer import PLAIN, lowp_node
from .record import record_fold


def fuse_bfloat16(model: ir.Model) -> int:
    """Replace each MatMul and Gemm of bfloat16 matrices by dso.LowpMatMul; return how many.

    A Gemm has no factors, and as its C a constant row or nothing.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "MatMul", "Gemm") or not _are_matrices(*node.inputs[:2]):
            continue
        is_gemm = node.op_type == "Gemm"
        factors = [node.attributes.get_float(name, 1.0) for name in ("alpha", "beta")]
        flags = [node.attributes.get_int(f"trans{f}", 0) if is_gemm else 0 for f in "AB"]
        added, bias = optional(node, 2), None
        if factors != [1.0, 1.0]:
            continue
        if added is not None:
            row = _row(added, node.outputs[0])
            if row is None:
                continue
            bias = _bias(model, added, row, node)
        inputs = [*node.inputs[:2], bias]
        attributes = {"trans_a": flags[0], "trans_b": flags[1], **PLAIN}
        replace(node, [lowp_node("LowpMatMul", inputs, attributes, node)])
        count += 1
    return count


def fuse_bfloat16_bias(model: ir.Model) -> int:
    """Add a constant row of bfloat16 to the sums before they are rounded; return how many."""
    count = 0
    for node in model.graph:
        if not is_node(node, "Add") or node.outputs[0].dtype != ir.DataType.BFLOAT16:
            continue
        for value in node.inputs:
            made = made_by(value, "LowpMatMul", domain=DSO)
            if made is None or optional(made, 2) is not None:
                continue
            added = other_input(node, made.outputs[0])
            row = _row(added, node.outputs[0])
            if added is None or row is None or not only_reads(node, made.outputs[0]):
                continue
            if same_shape(value, node.outputs[0]):
                refit(made, node, {2: _bias(model, added, row, made)})
                count += 1
                break
    return count


def _are_matrices(*values: ir.Value | None) -> bool:
    half = ir.DataType.BFLOAT16
    return all(v is not None and v.dtype == half and len(dims(v) or ()) >= 2 for v in values)


def _row(value: ir.Value | None, out: ir.Value) -> Array | None:
    """Return a constant with one element for each column, as float32."""
    array, shape = constant(value), dims(out)
    if array is None or not shape or array.size != shape[-1]:
        return None
    is_row = bool(array.shape) and array.shape[-1] == array.size
    return array.reshape(-1).astype(np.float32) if is_row else None


def _bias(model: ir.Model, value: ir.Value, row: Array, node: ir.Node) -> ir.Value:
    bias = new_weight(model, f"{value.name}/float32", row)
    record_fold(model, value, bias, f"the bias of {node.name!r}, in float32")
    return bias
