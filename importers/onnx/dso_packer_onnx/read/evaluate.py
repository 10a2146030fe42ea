"""Nodes with small outputs that are the same in every call, run by ONNX's own definition."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from .tensors import BITS
from .types import Type, fit

if TYPE_CHECKING:
    import numpy
    import onnx_ir as ir

    Arrays = Mapping[ir.Value, numpy.ndarray[Any, Any]]

MOST_VALUES = 1_024  # elements of a tensor whose values may decide on shapes
# Operators that compute shapes, indices and scales. Others may take long even for small outputs.
_ALLOWED = {
    *("Abs", "Add", "And", "Cast", "CastLike", "Ceil", "Compress", "Concat", "Constant"),
    *("ConstantOfShape", "CumSum", "Div", "Equal", "Exp", "Expand", "Flatten", "Floor", "Gather"),
    *("GatherElements", "GatherND", "Greater", "GreaterOrEqual", "Identity", "Less", "LessOrEqual"),
    *("Log", "Max", "Min", "Mod", "Mul", "Neg", "NonZero", "Not", "OneHot", "Or", "Pow", "Range"),
    *("Reciprocal", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "Reshape", "Round"),
    *("ScatterElements", "ScatterND", "Shape", "Sign", "Size", "Slice", "Split", "Sqrt", "Squeeze"),
    *("ArgMax", "ArgMin", "Clip", "EyeLike", "Pad", "ReduceMean", "Relu", "TopK"),
    *("Sub", "Sum", "Tile", "Transpose", "Trilu", "Unique", "Unsqueeze", "Where", "Xor"),
}
# Their outputs are at most as large as their inputs, whatever their shape.
_SHAPE_OF_VALUES = {"NonZero", "Compress", "Unique"}


def evaluate(
    node: ir.Node,
    proto: Any,
    types: Mapping[ir.Value, Type],
    constants: Arrays,
    found: Mapping[str, Type],
) -> dict[ir.Value, numpy.ndarray[Any, Any]]:
    """Return the outputs of a node that are small and constant; its inputs must be.

    `proto` is its NodeProto, `found` the types of its outputs. Shapes are constant too.
    """
    outputs = [value for value in node.outputs if value.name]
    if node.domain or node.op_type not in _ALLOWED:
        return {}
    is_open = node.op_type in _SHAPE_OF_VALUES
    if not is_open and any(_size(found.get(one.name)) > MOST_VALUES for one in outputs):
        return {}
    if node.op_type in ("Shape", "Size"):
        made = [_shape(node, types[node.inputs[0]].shape or ())]
    elif all(value is None or value in constants for value in node.inputs):
        made = reference(node, proto, constants)
    else:
        return {}
    pairs = zip(outputs, made, strict=False)
    return {value: array for value, array in pairs if _is_of(array, found.get(value.name))}


def _is_of(array: Any, type_: Type | None) -> bool:
    if type_ is None or array.itemsize * 8 != BITS[type_.dtype]:
        return False
    return fit(tuple(array.shape), type_.shape)


def _shape(node: ir.Node, shape: tuple[int | None, ...]) -> numpy.ndarray[Any, Any]:
    import numpy

    if node.op_type == "Size":
        return numpy.array(prod(extent or 0 for extent in shape), numpy.int64)
    start = node.attributes.get_int("start", 0)
    end = node.attributes.get_int("end", len(shape))
    return numpy.array(shape[start:end], numpy.int64)


def reference(node: ir.Node, proto: Any, constants: Arrays) -> list[Any]:
    """Return the outputs of a node for arrays; none if ONNX's own definition has a gap there."""
    import numpy
    import onnx
    from onnx.reference import ReferenceEvaluator

    model = onnx.ModelProto(ir_version=10)
    model.opset_import.add(domain="", version=node.graph.opset_imports[""])
    model.graph.name = "g"
    model.graph.node.append(proto)
    inputs = {value.name: constants[value] for value in node.inputs if value is not None}
    for name in inputs:
        model.graph.input.add(name=name)
    for value in node.outputs:
        if value.name:
            model.graph.output.add(name=value.name)
    try:
        with numpy.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made = ReferenceEvaluator(model).run(None, inputs)
    except Exception:  # it has a gap there: the value is computed in every call
        return []
    return [numpy.asarray(one) for one in made]


def _size(type_: Type | None) -> int:
    """Return how many elements a value has; many if that is unknown."""
    if type_ is None or type_.shape is None or None in type_.shape:
        return MOST_VALUES + 1
    return prod(extent or 0 for extent in type_.shape)
