"""Operators that ONNX defines by others, where data decides the shapes of their results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .replaced_node import ReplacedNode
from .sequence_loops import rename_values

if TYPE_CHECKING:
    import onnx_ir as ir

    from .passes import Passes

# The input that decides the shape.
_KINDS = {
    "AffineGrid": 1,
    "BlackmanWindow": 0,
    "CenterCropPad": 1,
    "HammingWindow": 0,
    "HannWindow": 0,
}


def needs_definition(node: ir.Node, passes: Passes) -> bool:
    """Return True if the shape of the result of such an operator differs between calls.

    Open extents of inputs do not relate the extents in the definition of AffineGrid.
    """
    if node.domain or node.op_type not in _KINDS:
        return False
    value = node.inputs[_KINDS[node.op_type]]
    is_open = value in passes.open.elements and node.op_type != "AffineGrid"
    return is_open or any(value not in one.constants for one in passes.all)


def put_definition(node: ir.Node, passes: Passes) -> None:
    """Let the operators of the definition, which are inferred next, take the place of the node."""
    import onnx
    import onnx_ir as ir
    from onnx.inliner import inline_selected_functions

    assert node.graph is not None
    inputs = [value for value in dict.fromkeys(node.inputs) if value is not None]
    model = onnx.ModelProto(ir_version=10)
    for domain, version in node.graph.opset_imports.items():
        model.opset_import.add(domain=domain, version=version)
    for value in inputs:
        dtype, shape = passes.all[0].types[value]
        type_ = onnx.helper.make_tensor_type_proto(dtype, [None] * len(shape or ()))
        model.graph.input.add(name=value.name, type=type_)
    proto = ir.serde.serialize_node(node)
    schema = onnx.defs.get_schema(node.op_type, node.graph.opset_imports[""])
    for name, attribute in schema.attributes.items():  # the inliner takes no defaults
        if name not in node.attributes and attribute.default_value.name:
            proto.attribute.append(attribute.default_value)
    model.graph.node.append(proto)
    model.graph.output.add(name=node.outputs[0].name)
    kinds = [(node.domain, node.op_type)]
    made = inline_selected_functions(model, kinds, inline_schema_functions=True)
    replaced = ReplacedNode(node, passes)
    graph = ir.from_proto(made.graph)
    rename_values(graph, replaced.new_name(""))
    replaced.put_graph(graph, inputs)
