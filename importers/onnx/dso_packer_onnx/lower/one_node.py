"""A node as a whole model, in which equal nodes are equal bytes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ..operator import elements

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir

    from ..operator import Shape

_SMALL = 256  # elements of an integer constant that is part of the code
# Operators whose last or second input is only the shape that the result has.
_SHAPE_INPUT = {"Reshape": 1, "Expand": 1, "ConstantOfShape": 0}


class OneNode(NamedTuple):
    """The model of one node."""

    # Its inputs are ``in0``, ``in1``, ..., its outputs ``out0``, ... ; constants that belong to the
    # code are initialisers.
    model: onnx.ModelProto
    inputs: tuple[ir.Value, ...]  # the values that these stand for
    outputs: tuple[ir.Value, ...]  # the values that these stand for
    constants: int  # how many of the inputs are constants; they could be in the code, too


def one_node_model(
    node: ir.Node, shapes: dict[ir.Value, Shape], *, embed_all: bool = False
) -> OneNode:
    """Make the model of a node.

    Parameters
    ----------
    node : ir.Node
        Its values have data types.
    shapes : dict of ir.Value to tuple of int
        The shape of each value; an entry of the batch alone, if there is one.
    embed_all : bool
        Whether every constant becomes part of the code, and not only small ones of integers.
    """
    import onnx
    import onnx_ir as ir

    used = _unique(node.inputs)
    outputs = tuple(results(node))
    replaced = _shape_constant(node, shapes)
    embedded = [v for v in used if v in replaced or _belongs_to_code(v, embed_all)]
    inputs = tuple(value for value in used if value not in embedded)
    names = {
        **{str(value.name): f"in{i}" for i, value in enumerate(inputs)},
        **{str(value.name): f"out{i}" for i, value in enumerate(outputs)},
        **{str(value.name): f"const{i}" for i, value in enumerate(embedded)},
    }
    names |= {str(value.name): "" for value in node.outputs if value not in outputs}
    proto = ir.serde.serialize_node(node)
    _rename(proto, names)
    proto.name = proto.doc_string = ""
    attributes = sorted(proto.attribute, key=lambda attribute: attribute.name)
    del proto.attribute[:], proto.metadata_props[:]
    proto.attribute.extend(attributes)
    initializers = [_tensor(v, names[str(v.name)], replaced.get(v)) for v in embedded]
    graph = onnx.helper.make_graph(
        [proto],
        "node",
        [_info(value, names, shapes) for value in inputs],
        [_info(value, names, shapes) for value in outputs],
        initializer=initializers,
    )
    model = onnx.helper.make_model(graph, opset_imports=_opsets(node), ir_version=10)
    constants = sum(value.const_value is not None for value in inputs)
    return OneNode(model, inputs, outputs, constants)


def results(node: ir.Node) -> list[ir.Value]:
    """Return the given outputs of a node; an omitted one has no name, or no type and use."""
    return [
        value
        for value in node.outputs
        if value.name and (value.type is not None or value.uses() or value.is_graph_output())
    ]


def _unique(values: Iterable[ir.Value | None]) -> list[ir.Value]:
    return list(dict.fromkeys(value for value in values if value is not None and value.name))


def _belongs_to_code(value: ir.Value, embed_all: bool) -> bool:
    import onnx_ir as ir

    if value.const_value is None:
        return False
    is_index = value.dtype in (ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL)
    return embed_all or (is_index and value.const_value.size <= _SMALL)


def _shape_constant(node: ir.Node, shapes: dict[ir.Value, Shape]) -> dict[ir.Value, Shape]:
    """Return the input that is only the shape of the result, which is known without it."""
    index = _SHAPE_INPUT.get(node.op_type) if node.domain in ("", "ai.onnx") else None
    value = node.inputs[index] if index is not None and index < len(node.inputs) else None
    is_only_shape = value is not None and list(node.inputs).count(value) == 1
    return {value: shapes[results(node)[0]]} if value is not None and is_only_shape else {}


def _rename(proto: onnx.NodeProto, names: dict[str, str]) -> None:
    """Rename the values of a node."""
    proto.input[:] = [names.get(name, name) for name in proto.input]
    proto.output[:] = [names.get(name, name) for name in proto.output]


def _tensor(value: ir.Value, name: str, shape: Shape | None) -> onnx.TensorProto:
    import numpy as np
    import onnx

    assert shape is not None or value.const_value is not None
    if shape is None:
        import onnx_ir as ir

        proto = ir.serde.serialize_tensor(value.const_value)
        proto.name, proto.doc_string = name, ""
        return proto
    return onnx.numpy_helper.from_array(np.array(shape, np.int64), name)


def _info(
    value: ir.Value, names: dict[str, str], shapes: dict[ir.Value, Shape]
) -> onnx.ValueInfoProto:
    import onnx

    assert value.dtype is not None
    shape = shapes[value]
    assert elements(shape) >= 0
    return onnx.helper.make_tensor_value_info(names[str(value.name)], int(value.dtype), shape)


def _opsets(node: ir.Node) -> list[onnx.OperatorSetIdProto]:
    import onnx

    graph = node.graph
    assert graph is not None
    versions = {key or "": version for key, version in graph.opset_imports.items()}
    return [onnx.helper.make_opsetid(key, versions[key]) for key in sorted(versions)]
