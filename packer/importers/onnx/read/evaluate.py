"""Nodes with small outputs that are the same in every call, run by ONNX's own definition."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from math import prod
from typing import TYPE_CHECKING, Any

from .tensors import BITS
from .types import Type, graphs_of

if TYPE_CHECKING:
    import numpy
    import onnx_ir as ir

    Arrays = Mapping[ir.Value, numpy.ndarray[Any, Any]]

MOST_VALUES = 1_024  # elements of a tensor whose values may decide on shapes
_RANDOM = {
    *("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike"),
    *("Bernoulli", "Multinomial", "Dropout"),
}


def evaluate(
    node: ir.Node, proto: Any, types: Mapping[ir.Value, Type], constants: Arrays
) -> dict[ir.Value, numpy.ndarray[Any, Any]]:
    """Return the outputs of a node that are small and constant; its inputs must be.

    `proto` is its NodeProto. Shapes are constant too.
    """
    outputs = [value for value in node.outputs if value.name]
    if node.domain or node.op_type in _RANDOM or next(graphs_of(node), None) is not None:
        return {}
    if any(_size(types[value]) > MOST_VALUES for value in outputs):
        return {}
    if node.op_type in ("Shape", "Size"):
        made = [_shape(node, types[node.inputs[0]].shape or ())]
    elif all(value is None or value in constants for value in node.inputs):
        made = _reference(node, proto, constants)
    else:
        return {}
    pairs = zip(outputs, made, strict=False)
    return {value: array for value, array in pairs if _is_of(array, types[value])}


def _is_of(array: Any, type_: Type) -> bool:
    return bool(array.shape == type_.shape and array.itemsize * 8 == BITS[type_.dtype])


def _shape(node: ir.Node, shape: tuple[int | None, ...]) -> numpy.ndarray[Any, Any]:
    import numpy

    if node.op_type == "Size":
        return numpy.array(prod(extent or 0 for extent in shape), numpy.int64)
    start = node.attributes.get_int("start", 0)
    end = node.attributes.get_int("end", len(shape))
    return numpy.array(shape[start:end], numpy.int64)


def _reference(node: ir.Node, proto: Any, constants: Arrays) -> list[Any]:
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


def _size(type_: Type) -> int:
    return prod(extent for extent in type_.shape or () if extent is not None)
