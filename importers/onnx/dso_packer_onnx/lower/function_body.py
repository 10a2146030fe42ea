"""Operators that ONNX defines by others: the model of one node, with these in place of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

_SCORES, _FLOAT16 = 4, 10  # outputs of Attention with its scores; TensorProto.DataType


def needs_body(node: ir.Node) -> bool:
    """Return True if the generator's code for the operator differs from ONNX's definition.

    That of Attention limits the scores before it adds the mask, numbers the modes of its fourth
    output otherwise, and does not round float16 in between.
    """
    if node.op_type != "Attention":
        return False
    limit = node.attributes.get("softcap")
    is_limited = limit is not None and limit.as_float() != 0
    return is_limited or len(node.outputs) == _SCORES or node.outputs[0].dtype == _FLOAT16


def with_body(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """Return the model with the operators that define its node, or None if there are none."""
    from onnx.inliner import inline_selected_functions

    (node,) = model.graph.node
    found = inline_selected_functions(
        model, [(node.domain, node.op_type)], inline_schema_functions=True
    )
    is_same = len(found.graph.node) == 1 and found.graph.node[0].op_type == node.op_type
    return None if is_same else found
