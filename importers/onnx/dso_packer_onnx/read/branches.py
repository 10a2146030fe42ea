"""Branches whose condition is the same in every call, and bodies that return outer values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx_ir as ir


def copy_outer_outputs(graph: Any, depth: int = 0) -> None:
    """Let a node make each output of a body that is a value around it, in a GraphProto."""
    known = {one.name for one in (*graph.input, *graph.initializer)}
    known |= {name for node in graph.node for name in node.output}
    for value in graph.output if depth else ():
        if value.name not in known:
            made = f"{value.name}_of_{graph.name or 'body'}_{depth}"
            graph.node.add(op_type="Identity", input=[value.name], output=[made])
            value.name = made
    for node in graph.node:
        for attribute in node.attribute:
            for inner in [attribute.g] if attribute.HasField("g") else attribute.graphs:
                copy_outer_outputs(inner, depth + 1)


def take_branch(graph: ir.Graph, node: ir.Node, condition: bool) -> None:
    """Replace an If whose condition is known by the nodes of the branch."""
    import onnx_ir as ir

    branch = node.attributes["then_branch" if condition else "else_branch"].as_graph()
    used = {value.name for one in graph for value in one.outputs} | {*graph.initializers}
    used |= {value.name for value in graph.inputs}
    for value in [*branch.initializers.values()]:
        branch.initializers.pop(value.name)
        value.name = unused_name(value.name, used)
        graph.register_initializer(value)
    nodes = [*branch]
    inner = [*branch.outputs]
    branch.outputs.clear()
    branch.remove(nodes)
    for one in nodes:
        for value in one.outputs:
            if value.name:
                value.name = unused_name(value.name, used)
    # An Identity keeps the name of the If's output, whatever the branch returns.
    last = [ir.Node("", "Identity", [value], num_outputs=1) for value in inner]
    graph.insert_after(node, [*nodes, *last])
    for value, one in zip(node.outputs, last, strict=False):
        made = one.outputs[0]
        name, value.name = value.name, None
        made.name, made.type, made.shape = name, value.type, value.shape
        value.replace_all_uses_with(made, replace_graph_outputs=True)
    graph.remove(node)


def unused_name(name: str, used: set[str]) -> str:
    """Return a name that no other value has, and count it as used."""
    made, count = name, 1
    while made in used:
        count += 1
        made = f"{name}_{count}"
    used.add(made)
    return made
