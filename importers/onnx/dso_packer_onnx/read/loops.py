"""Control flow whose shapes are known: Loops that keep the shapes they carry, and decided Ifs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .types import Type

if TYPE_CHECKING:
    import onnx_ir as ir

_CARRIED = 2  # the inputs of a Loop before the values that it carries; its body has as many


def with_carried_types(node: ir.Node, proto: Any, types: Mapping[ir.Value, Type]) -> Any:
    """Return the NodeProto of a Loop whose body gets values of the shapes of the first round."""
    import onnx

    made = onnx.NodeProto()
    made.CopyFrom(proto)
    body = next(one.g for one in made.attribute if one.name == "body")
    for value, inner in zip(node.inputs[_CARRIED:], body.input[_CARRIED:], strict=False):
        if value is not None:
            dtype, shape = types[value]
            inner.type.CopyFrom(onnx.helper.make_tensor_type_proto(dtype, shape))
    return made


def invariant_types(node: ir.Node, proto: Any, types: Mapping[ir.Value, Type]) -> dict[str, Type]:
    """Return the types of a Loop's results that have the same shape after each round.

    `proto` is the NodeProto with the types that were inferred in its body.
    """
    body = next(one.g for one in proto.attribute if one.name == "body")
    found = {}
    for index, value in enumerate(node.inputs[_CARRIED:]):
        made = body.output[1 + index].type.tensor_type
        if value is None or not made.HasField("shape"):
            continue
        extents = [d.dim_value if d.HasField("dim_value") else None for d in made.shape.dim]
        if Type(made.elem_type, tuple(extents)) == types[value]:
            found[node.outputs[index].name] = types[value]
    return found


def take_branch(graph: ir.Graph, node: ir.Node, condition: bool) -> None:
    """Replace an If whose condition is known by the nodes of the branch."""
    import onnx_ir as ir

    branch = node.attributes["then_branch" if condition else "else_branch"].as_graph()
    used = {value.name for one in graph for value in one.outputs} | {*graph.initializers}
    used |= {value.name for value in graph.inputs}
    for value in [*branch.initializers.values()]:
        branch.initializers.pop(value.name)
        value.name = _unused(value.name, used)
        graph.register_initializer(value)
    nodes = [*branch]
    inner = [*branch.outputs]
    branch.outputs.clear()
    branch.remove(nodes)
    for one in nodes:
        for value in one.outputs:
            if value.name:
                value.name = _unused(value.name, used)
    # An Identity keeps the name of the If's output, whatever the branch returns.
    last = [ir.Node("", "Identity", [value], num_outputs=1) for value in inner]
    graph.insert_after(node, [*nodes, *last])
    for value, one in zip(node.outputs, last, strict=False):
        made = one.outputs[0]
        name, value.name = value.name, None
        made.name, made.type, made.shape = name, value.type, value.shape
        value.replace_all_uses_with(made, replace_graph_outputs=True)
    graph.remove(node)


def _unused(name: str, used: set[str]) -> str:
    """Return a name that no other value has, and count it as used."""
    made, count = name, 1
    while made in used:
        count += 1
        made = f"{name}_{count}"
    used.add(made)
    return made
