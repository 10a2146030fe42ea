"""The node before each node whose results have extents that the data decides.

``dso.Extents`` reads the same inputs, and writes the extents as int64 numbers; its attribute
`symbols` names them. The boxes of a NonMaxSuppression and the elements of a Unique are found by
it too, in tensors that are large enough: ``dso.Prefix`` takes what was found.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..extent import Extent, expression_of, product, written
from .equations import extents_of
from .flow_node import KEY as FLOW
from .flow_node import FlowNode

if TYPE_CHECKING:
    import onnx_ir as ir

    from .births import Births

KEY = "outputs"  # in `ir.Model.meta`: how many outputs the model has
_BOXES, _MOST, _UNIQUE = "NonMaxSuppression", 2, "Unique"
_UNIQUE_RESULTS = ("values", "places", "inverse", "counts")


def put_extents(model: ir.Model, births: Births) -> None:
    """Insert the nodes, whose numbers are outputs of the graph until `take_extents`."""
    model.meta[KEY] = len(model.graph.outputs)
    made = [_put(model.graph, node, births) for node in births.nodes]
    # The shape of a result may be used though the result is not.
    made += [value for node in model.graph if _defines(node) for value in node.outputs[:1]]
    model.graph.outputs.extend(value for value in made if not value.is_graph_output())


def take_extents(model: ir.Model) -> None:
    """Let the numbers no longer be outputs: from here on operators name their symbols."""
    del model.graph.outputs[model.meta[KEY] :]


def _defines(node: ir.Node) -> bool:
    """Return True for a branch or a loop whose results have new symbols."""
    flow: FlowNode | None = node.meta.get(FLOW)
    return flow is not None and bool(flow.born)


def _put(graph: ir.Graph, node: ir.Node, births: Births) -> ir.Value:
    import onnx_ir as ir

    names = births.nodes[node]
    found = _found(node)
    attributes = [
        *(one for one in node.attributes.values() if one.type is not ir.AttributeType.GRAPH),
        ir.AttrString("kind", node.op_type),
        ir.AttrStrings("symbols", names),
        ir.AttrStrings("results", [_UNIQUE_RESULTS[index] for index, *_ in found]),
        ir.AttrStrings("axes_of_result", _axes(node, names)),
    ]
    made = ir.Node("dso", "Extents", node.inputs, attributes, num_outputs=1 + len(found))
    graph.insert_before(node, made)
    numbers = made.outputs[0]
    stem = next(value.name for value in node.outputs if value.name)
    numbers.name = f"{stem}_extents"
    numbers.type, numbers.shape = ir.TensorType(ir.DataType.INT64), ir.Shape([len(names)])
    taken = []
    for (_, value, shape), scratch in zip(found, made.outputs[1:], strict=True):
        scratch.name = f"{value.name}_found"
        scratch.type, scratch.shape = value.type, ir.Shape(shape)
        axis = node.attributes.get_int("axis", 0) if value is node.outputs[0] else 0
        prefix = ir.Node("dso", "Prefix", [scratch], [ir.AttrInt64("axis", axis)], num_outputs=1)
        out = prefix.outputs[0]
        name, value.name = value.name, None
        out.name, out.type, out.shape = name, value.type, value.shape
        value.replace_all_uses_with(out, replace_graph_outputs=True)
        taken.append(prefix)
    if found:
        graph.insert_after(node, taken)
        graph.remove(node)
    return numbers


def _axes(node: ir.Node, names: list[str]) -> list[str]:
    """Return the extents of the first result, "?" for one that the node finds."""
    found = map(str, extents_of(node.outputs[0]))
    return ["?" if extent in names else extent for extent in found]


def _found(node: ir.Node) -> list[tuple[int, ir.Value, list[Extent]]]:
    """Return the results that the node itself finds: each with a shape that is large enough."""
    if node.op_type == _BOXES:
        batch, count, _ = extents_of(_given(node, 0))
        classes = extents_of(_given(node, 1))[1]
        return [(0, node.outputs[0], [product((batch, classes, _most(node, count))), 3])]
    if node.op_type != _UNIQUE:
        return []
    shape = extents_of(_given(node, 0))
    whole = product(shape)
    first: list[Extent] = [whole]
    if "axis" in node.attributes:
        whole, first = shape[node.attributes.get_int("axis", 0)], shape
    sizes = [first, [whole], [whole], [whole]]
    pairs = enumerate(zip(node.outputs, sizes, strict=False))
    return [(i, value, size) for i, (value, size) in pairs if value.name and value.type]


def _most(node: ir.Node, count: Extent) -> Extent:
    """Return the most boxes that a NonMaxSuppression selects of one class."""
    import onnx_ir as ir
    import sympy

    value = node.inputs[_MOST] if len(node.inputs) > _MOST else None
    tensor = None if value is None else ir.convenience.get_const_tensor(value)
    if tensor is None:
        return count
    most = max(int(tensor.numpy().reshape(-1)[0]), 0)
    return written(sympy.Min(most, expression_of(count))) if most else 0


def _given(node: ir.Node, index: int) -> ir.Value:
    value = node.inputs[index]
    assert value is not None
    return value
