"""Results whose shape the data decides: which a model may declare, and what the others need."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from runtime.error import listed

if TYPE_CHECKING:
    import onnx_ir as ir

# The inputs whose values decide the shape of the result, where ONNX's inference needs them.
_DECIDING = {
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "DFT": (1, 2),
    "Expand": (1,),
    "If": (0,),
    "MaxUnpool": (2,),
    "MelWeightMatrix": (0, 1),
    "OneHot": (1,),
    "Pad": (1, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (2, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
    **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"), (1,)),
    **dict.fromkeys(("ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum"), (1,)),
    "ReduceSumSquare": (1,),
}
# Each call compares the declared length with the real one: see `lower.counts`.
_CHECKED = {"Compress", "NonMaxSuppression", "NonZero", "Slice", "Unique"}


_END = "end the model before this node, at its inputs (onnx.utils.extract_model)"
_AXES = 3  # the input of a Slice


def may_declare(node: ir.Node, constants: Mapping[ir.Value, Any]) -> bool:
    """Return True if a declared shape may complete the inferred one of a result.

    `constants` are the values that are the same in every call.
    """
    deciding = _deciding(node, constants)
    is_checked = node.op_type in _CHECKED and not {*node.inputs[_AXES:4]} & {*deciding}
    return is_checked or not deciding


def advice(node: ir.Node, constants: Mapping[ir.Value, Any]) -> str:
    """Return how a model can have a result whose shape is open, in words."""
    deciding = _deciding(node, constants)
    inputs = _graph_inputs(deciding, constants)
    if inputs and all(_is_number(value) for value in inputs):
        names = listed([str(value.name) for value in inputs])
        return f"give {names}, which decides it, by input_values (--input-value)"
    if deciding or node.op_type in _CHECKED:
        return f"the data decides it; {_END}"
    return "declare it in the model (value_info)"


def _deciding(node: ir.Node, constants: Mapping[ir.Value, Any]) -> list[ir.Value]:
    """Return the inputs that decide the shape and differ between calls; empty ones cannot."""
    places = _DECIDING.get(node.op_type, ()) if not node.domain else ()
    found = [node.inputs[place] for place in places if place < len(node.inputs)]
    return [
        value
        for value in found
        if value is not None and value not in constants and 0 not in (value.shape or ())
    ]


def _graph_inputs(values: list[ir.Value], constants: Mapping[ir.Value, Any]) -> list[ir.Value]:
    """Return the inputs of the model from which each call computes values."""
    found, seen, waiting = [], set(constants), [*values]
    while waiting:
        value = waiting.pop(0)
        if value in seen:
            continue
        seen.add(value)
        producer = value.producer()
        if producer is None:
            found.append(value)
        else:
            waiting += [one for one in producer.inputs if one is not None]
    return found


def _is_number(value: ir.Value) -> bool:
    """Return True if an input has one axis at most, so that a user can give it."""
    return value.shape is not None and len(value.shape) <= 1
