"""Matrix products: MatMul and Gemm become dso.MatMul, with the transposes of their factors."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from .graph import (
    DSO,
    changed_weight,
    constant,
    dims,
    equal_dims,
    is_constant,
    is_factor,
    is_float32,
    is_node,
    made_by,
    new_node,
    optional,
    replace,
)

PLAIN = {"activation": "", "low": 0.0, "high": 0.0}


def fuse_matmul(model: ir.Model) -> int:
    """Replace each MatMul of float32 matrices by dso.MatMul; return how many.

    Both factors have two axes or more. A Transpose of the last two axes of a factor becomes
    ``trans_a`` or ``trans_b``.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "MatMul") or not is_float32(node.inputs[0]):
            continue
        ranks = [len(dims(value) or ()) for value in node.inputs]
        if min(ranks) < 2:
            continue
        transposes = [_last_two_swapped(value) for value in node.inputs]
        factors = [
            value if transpose is None else transpose.inputs[0]
            for value, transpose in zip(node.inputs, transposes, strict=True)
        ]
        if not is_factor(factors[1]):
            continue
        attributes = {
            "trans_a": int(transposes[0] is not None),
            "trans_b": int(transposes[1] is not None),
            **PLAIN,
        }
        new = new_node(
            "MatMul", factors, attributes, like=node.outputs[0], name=node.name, domain=DSO
        )
        replace(node, [new])
        count += 1
    return count


def _last_two_swapped(value: ir.Value | None) -> ir.Node | None:
    node = made_by(value, "Transpose")
    if node is None:
        return None
    perm = list(node.attributes.get_ints("perm", []))
    rank = len(dims(value) or ())
    swapped = [*range(rank - 2), rank - 1, rank - 2]
    return node if perm == swapped or (not perm and rank == 2) else None


def fuse_gemm(model: ir.Model) -> int:
    """Replace each float32 Gemm by dso.MatMul; return how many.

    ``alpha`` is multiplied into a constant B, and ``beta`` into a constant C. C becomes the bias
    if it is one row, and the residual if it is as large as the output. Any other remains a Gemm.
    """
    count = 0
    for node in model.graph:
        if not is_node(node, "Gemm") or not is_float32(node.inputs[0]):
            continue
        attributes = node.attributes
        alpha, beta = attributes.get_float("alpha", 1.0), attributes.get_float("beta", 1.0)
        weight, added = node.inputs[1], optional(node, 2)
        if not is_factor(weight) or (alpha != 1.0 and not is_constant(weight)):
            continue
        if dims(weight) is None or (added is not None and _place(node, added, beta) is None):
            continue
        if alpha != 1.0:
            weight = _scaled(model, weight, alpha, f"multiplied by the alpha of {node.name!r}")
        inputs = [node.inputs[0], weight, *_addends(model, node, added, beta)]
        flags = {key: attributes.get_int(name, 0) for key, name in _FLAGS.items()}
        new = new_node(
            "MatMul", inputs, {**flags, **PLAIN}, like=node.outputs[0], name=node.name, domain=DSO
        )
        replace(node, [new])
        count += 1
    return count


_FLAGS = {"trans_a": "transA", "trans_b": "transB"}


def _place(node: ir.Node, added: ir.Value, beta: float) -> str | None:
    """Return what C of a Gemm is: "zero", "bias", "residual", or None for any other."""
    shape, output = dims(added), dims(node.outputs[0])
    if shape is None or output is None or not is_float32(added):
        return None
    if beta == 0.0:
        return "zero"
    if is_constant(added):
        if added.const_value.size == 1:
            return "bias" if isinstance(output[1], int) else None
        if equal_dims(shape, output[1:]) or equal_dims(shape, (1, *output[1:])):
            return "bias"
    elif beta != 1.0:
        return None
    elif equal_dims(shape, output[1:]):
        return "bias"
    if equal_dims(shape, output) and (beta == 1.0 or is_constant(added)):
        return "residual"
    return None


def _addends(
    model: ir.Model, node: ir.Node, added: ir.Value | None, beta: float
) -> list[ir.Value | None]:
    place = None if added is None else _place(node, added, beta)
    if added is None or place == "zero":
        return []
    value = constant(added)
    if value is not None and place == "bias":
        columns = int((dims(node.outputs[0]) or ())[1])
        row = np.broadcast_to(value.reshape(-1), (columns,)) * np.float32(beta)
        if beta != 1.0 or row.shape != value.shape:
            added = changed_weight(model, added, row, f"the bias of {node.name!r}")
    elif value is not None and beta != 1.0:
        added = _scaled(model, added, beta, f"multiplied by the beta of {node.name!r}")
    return [added] if place == "bias" else [None, added]


def _scaled(model: ir.Model, value: ir.Value | None, factor: float, why: str) -> ir.Value:
    assert value is not None
    array = constant(value)
    assert array is not None
    return changed_weight(model, value, array * np.float32(factor), why)
