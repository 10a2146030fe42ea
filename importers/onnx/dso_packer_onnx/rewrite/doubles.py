"""Matrix products of float64: MatMul and Gemm become dso.DoubleMatMul."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from .graph import DSO, dims, is_node, new_node, new_weight, optional, replace


def fuse_doubles(model: ir.Model) -> int:
    """Replace each MatMul and Gemm of float64 matrices by dso.DoubleMatMul; return how many.

    The factors and the addend of a Gemm become a Mul and an Add.
    """
    count = 0
    for node in list(model.graph):
        if is_node(node, "MatMul", "Gemm") and _are_matrices(*node.inputs[:2]):
            replace(node, _nodes(model, node))
            count += 1
    return count


def _are_matrices(*values: ir.Value | None) -> bool:
    double = ir.DataType.DOUBLE
    return all(v is not None and v.dtype == double and len(dims(v) or ()) >= 2 for v in values)


def _nodes(model: ir.Model, node: ir.Node) -> list[ir.Node]:
    like, is_gemm = node.outputs[0], node.op_type == "Gemm"
    flags = {f"trans_{f.lower()}": node.attributes.get_int(f"trans{f}", 0) for f in "AB"}
    nodes = [
        new_node("DoubleMatMul", node.inputs[:2], flags, like=like, name=node.name, domain=DSO)
    ]
    alpha, beta = (node.attributes.get_float(name, 1.0) for name in ("alpha", "beta"))
    if is_gemm and alpha != 1.0:
        nodes.append(_scaled(model, node, nodes[-1].outputs[0], alpha))
    added = optional(node, 2)
    if is_gemm and added is not None and beta != 0.0:
        total = nodes[-1].outputs[0]
        if beta != 1.0:
            nodes.append(_scaled(model, node, added, beta))
            added = nodes[-1].outputs[0]
        nodes.append(new_node("Add", [total, added], like=like))
    return nodes


def _scaled(model: ir.Model, node: ir.Node, value: ir.Value, factor: float) -> ir.Node:
    number = new_weight(model, f"{node.name}.factor", np.array(factor))
    return new_node("Mul", [value, number], shape=dims(value), dtype=ir.DataType.DOUBLE)
