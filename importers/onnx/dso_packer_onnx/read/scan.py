"""A Scan as a Loop: a round takes its slices of the inputs; the rows that it makes are turned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .types import graphs_of

if TYPE_CHECKING:
    import onnx_ir as ir

    from .passes import Passes

_END = -(1 << 63) + 1


def loop_of_scan(node: ir.Node, passes: Passes) -> ir.Node:
    """Replace a Scan by a Loop with the nodes around it; types are inferred up to the Loop."""
    import onnx_ir as ir

    graph = node.graph
    assert graph is not None
    count = node.attributes.get_int("num_scan_inputs", 0)
    num_states = len(node.inputs) - count
    states, scanned = node.inputs[:num_states], node.inputs[num_states:]
    axes = _numbers(node, "scan_input_axes", count)
    turned = _numbers(node, "scan_input_directions", count)
    body = next(graphs_of(node)).clone(allow_outer_scope_values=True)
    body.opset_imports.update(graph.opset_imports)
    _take_slices(body, scanned, axes, turned)
    ranks = [len(passes.all[0].types[v].shape or ()) for v in scanned if v is not None]
    axis = axes[0] % max(ranks[0], 1)
    attributes = [ir.AttrInt64("start", axis), ir.AttrInt64("end", axis + 1)]
    rounds = ir.Node("", "Shape", [scanned[0]], attributes, num_outputs=1)
    rounds.outputs[0].name = f"{_stem(node)}_rounds"
    graph.insert_before(node, rounds)
    passes.step(rounds)
    inputs = [rounds.outputs[0], None, *states]
    loop = ir.Node(
        "",
        "Loop",
        inputs,
        [ir.AttrGraph("body", body)],
        num_outputs=len(node.outputs),
        name=node.name,
    )
    graph.insert_after(node, loop)
    results = len(node.outputs) - num_states
    out_axes = _numbers(node, "scan_output_axes", results)
    out_turned = _numbers(node, "scan_output_directions", results)
    for index, (old, new) in enumerate(zip(node.outputs, loop.outputs, strict=True)):
        name, old.name = old.name, None
        new.name, new.type = name or f"{_stem(node)}_unused{index}", old.type
        last = new
        if index >= num_states:
            at = index - num_states
            rank = len(body.outputs[1 + index].shape or ()) + 1
            last = _turned(graph, passes, new, out_axes[at] % rank, bool(out_turned[at]), rank)
        if last is not new:
            new.name, last.name = f"{new.name}_rows", new.name
        old.replace_all_uses_with(last, replace_graph_outputs=True)
    graph.remove(node)
    return loop


def _stem(node: ir.Node) -> str:
    return next(str(value.name) for value in node.outputs if value.name)


def _numbers(node: ir.Node, name: str, count: int) -> list[int]:
    return list(node.attributes.get_ints(name) or [0] * count)


def _take_slices(body: ir.Graph, scanned: Any, axes: list[int], turned: list[int]) -> None:
    """Let a body have the inputs and outputs of a Loop's."""
    import onnx_ir as ir

    inner = body.inputs[len(body.inputs) - len(axes) :]
    del body.inputs[len(body.inputs) - len(axes) :]
    number = ir.Value(name="scan_round", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([]))
    going = ir.Value(name="scan_goes_on", type=ir.TensorType(ir.DataType.BOOL), shape=ir.Shape([]))
    body.inputs.insert(0, number)
    body.inputs.insert(1, going)
    first: list[ir.Node] = []
    for place, (value, outer) in enumerate(zip(inner, scanned, strict=True)):
        index = number
        if turned[place]:
            index = _from_end(body, first, number, place)
        node = ir.Node(
            "", "Gather", [outer, index], [ir.AttrInt64("axis", axes[place])], num_outputs=1
        )
        made = node.outputs[0]
        made.name, made.type = f"{value.name}_slice", value.type
        first.append(node)
        value.replace_all_uses_with(made, replace_graph_outputs=True)
    last = ir.Node("", "Identity", [going], num_outputs=1)
    last.outputs[0].name = "scan_goes_on_output"
    for node in reversed(first):
        body.insert_before(body[0], node) if len(body) else body.append(node)
    body.append(last)
    body.outputs.insert(0, last.outputs[0])


def _from_end(body: ir.Graph, nodes: list[ir.Node], number: ir.Value, place: int) -> ir.Value:
    """Append the index of a round that counts from the end: -1 and less."""
    import numpy
    import onnx_ir as ir

    array = numpy.array(-1, numpy.int64)
    one = ir.Value(
        name=f"scan_last_{place}",
        type=ir.TensorType(ir.DataType.INT64),
        shape=ir.Shape([]),
        const_value=ir.Tensor(array, name=f"scan_last_{place}"),
    )
    body.register_initializer(one)
    index = ir.Node("", "Sub", [one, number], num_outputs=1)
    index.outputs[0].name = f"scan_index_{place}"
    nodes.append(index)
    return index.outputs[0]


def _turned(
    graph: ir.Graph, passes: Passes, value: ir.Value, axis: int, is_turned: bool, rank: int
) -> ir.Value:
    """Insert the nodes that turn the rows of a Scan; return what they make."""
    import onnx_ir as ir

    made = []
    if is_turned:
        numbers = [
            passes.constant(f"{value.name}_{name}", [number])
            for name, number in (("start", -1), ("end", _END), ("axis", 0), ("step", -1))
        ]
        made.append(ir.Node("", "Slice", [value, *numbers], num_outputs=1))
    if axis:
        last = made[-1].outputs[0] if made else value
        perm = [*range(1, rank)]
        perm.insert(axis, 0)
        made.append(ir.Node("", "Transpose", [last], [ir.AttrInt64s("perm", perm)], num_outputs=1))
    node = value.producer()
    assert node is not None
    graph.insert_after(node, made)
    for number, one in enumerate(made):
        one.outputs[0].name = f"{value.name}_turned{number}"
    return made[-1].outputs[0] if made else value
