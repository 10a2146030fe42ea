"""Bias, residual and activation after a sum, as `dso_op_after` describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir

_ACTIVATIONS = {
    "": "DSO_OP_NONE",
    "relu": "DSO_OP_RELU",
    "clip": "DSO_OP_CLIP",
    "gelu": "DSO_OP_GELU",
    "gelu_tanh": "DSO_OP_GELU_TANH",
}


def after_in_c(node: ir.Node, bias: str, residual: str) -> str:
    """Return an initialiser of ``struct dso_op_after``.

    Parameters
    ----------
    node : ir.Node
        Its attributes ``activation``, ``low`` and ``high`` are read.
    bias, residual : str
        C expressions, or empty.
    """
    fields = []
    if bias:
        fields.append(f".bias = {bias}")
    if residual:
        fields.append(f".residual = {residual}")
    activation = node.attributes.get_string("activation", "")
    if activation:
        fields.append(f".activation = {_ACTIVATIONS[activation]}")
    if activation == "clip":
        low, high = (float_in_c(node.attributes.get_float(end)) for end in ("low", "high"))
        fields.append(f".low = {low}, .high = {high}")
    return "{" + (", ".join(fields) or "0") + "}"


def float_in_c(value: float | None) -> str:
    """Return a float32 constant, exact in every bit."""
    assert value is not None
    if value != value:
        return '__builtin_nanf("")'
    if value in (float("inf"), float("-inf")):
        return "__builtin_inff()" if value > 0 else "-__builtin_inff()"
    return f"{float(value).hex()}f"
