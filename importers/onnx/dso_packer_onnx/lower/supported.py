"""Refusals before code is generated, and the causes of those by the generator."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..read.words import first_line
from .one_node import results
from .refused import refuse

if TYPE_CHECKING:
    import onnx_ir as ir

_RANDOM = (
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
)


def check_supported(node: ir.Node) -> None:
    """Refuse what no tensors of fixed shape and fixed content can stand for.

    Raises OperatorRefusedError: by the first cause that is found.
    """
    import onnx_ir as ir

    inputs = [value for value in node.inputs if value is not None and value.name]
    values = [*inputs, *results(node)]
    for value in values:
        if value.dtype == ir.DataType.STRING:
            raise refuse(node, "string")
    if node.op_type in _RANDOM:
        raise refuse(node, "random")
    if node.op_type == "ImageDecoder":
        raise refuse(node, "image")
    for value in values:
        if value.dtype is None:
            raise refuse(node, "dtype", f"value {value.name!r} has none")
        if value.shape is None or any(extent is None for extent in _extents(value)):
            raise refuse(node, "shape", f"value {value.name!r}")


def _extents(value: ir.Value) -> list[object]:
    assert value.shape is not None
    return [d if isinstance(d, int) else d.value for d in value.shape]


def reason_of(error: Exception) -> str:
    """Return why the generator has no code, without its description of the node."""
    return first_line(error).partition(" (while lowering ")[0]


def cause_of(reason: str) -> str:
    """Return the cause for which no code could be generated."""
    return "dtype" if re.search(r"dtype|elem(ent)?[ _]type", reason) else "unknown"
