"""The weights of a model, taken out of it before other tools copy it.

The tools of ONNX get the model as bytes. Of a large tensor they get the name and the shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import TYPE_CHECKING, Any

from runtime.error import shown

if TYPE_CHECKING:
    import onnx_ir as ir

    from .tensors import Tensors

_KEPT = 1_024  # elements of a tensor that conversions may need to know
_EXTERNAL = 1  # TensorProto.data_location
# The attribute of a Constant, its type of data, and how many axes it has.
_VALUES = {
    "value_float": ("FLOAT", 0),
    "value_floats": ("FLOAT", 1),
    "value_int": ("INT64", 0),
    "value_ints": ("INT64", 1),
}


def take_weights(model: Any, tensors: Tensors) -> dict[str, ir.TensorProtocol]:
    """Take the large initialisers out of a ModelProto, and return them by name.

    Constants become initialisers; initialisers stop being inputs of the graph. Data in other files
    is mapped, or copied into the model where it belongs to an attribute.
    """
    graph = model.graph
    model.ir_version = max(model.ir_version, 10)  # where initialisers need not be inputs
    _constants_to_initialisers(graph)
    names = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in names]
    del graph.input[:]
    graph.input.extend(inputs)
    for tensor in _inner_tensors(model):
        if tensor.data_location == _EXTERNAL:
            tensor.CopyFrom(_whole(tensor, tensors))
    taken = {}
    for tensor in graph.initializer:
        if tensor.data_location == _EXTERNAL or prod(tensor.dims) > _KEPT:
            where = f"initialiser {shown(tensor.name)}"
            taken[tensor.name] = tensors.read(tensor, where)
            _empty(tensor)
    return taken


def _constants_to_initialisers(graph: Any) -> None:
    import onnx

    outputs = {value.name for value in graph.output}
    kept = []
    for node in graph.node:
        attribute = node.attribute[0] if len(node.attribute) == 1 else None
        made = None
        if (node.op_type, node.domain, len(node.output)) == ("Constant", "", 1) and attribute:
            if attribute.name == "value" and attribute.HasField("t"):
                made = attribute.t
            elif attribute.name in _VALUES:
                dtype, axes = _VALUES[attribute.name]
                array = onnx.helper.get_attribute_value(attribute)
                dims = [len(array)] if axes else []
                array = array if axes else [array]
                made = onnx.helper.make_tensor("", getattr(onnx.TensorProto, dtype), dims, array)
        if made is None or node.output[0] in outputs:
            kept.append(node)
            continue
        graph.initializer.append(made)
        graph.initializer[-1].name = node.output[0]
    if len(kept) < len(graph.node):
        del graph.node[:]
        graph.node.extend(kept)


def _inner_tensors(model: Any) -> Iterator[Any]:
    """The tensors of attributes, also in subgraphs and functions."""
    nodes = [*model.graph.node, *(node for one in model.functions for node in one.node)]
    while nodes:
        for attribute in nodes.pop().attribute:
            if attribute.HasField("t"):
                yield attribute.t
            yield from attribute.tensors
            for graph in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                yield from graph.initializer
                nodes += graph.node


def _whole(tensor: Any, tensors: Tensors) -> Any:
    """Return a tensor of another file with its data."""
    import onnx_ir as ir

    made = ir.to_proto(tensors.read(tensor, f"tensor {shown(tensor.name)}"))
    made.name = tensor.name
    return made


def _empty(tensor: Any) -> None:
    """Leave the name, the type and the shape of a tensor."""
    name, dtype, dims = tensor.name, tensor.data_type, list(tensor.dims)
    tensor.Clear()
    tensor.name, tensor.data_type, tensor.data_location = name, dtype, _EXTERNAL
    tensor.dims.extend(dims)
    tensor.external_data.add(key="location", value="taken")
