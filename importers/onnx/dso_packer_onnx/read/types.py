"""Types of values during inference, and the values that a node uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from .tensors import BITS

if TYPE_CHECKING:
    import onnx_ir as ir

Shape = tuple[int | None, ...]
_FLOATS = {1: "float32", 11: "float64"}  # which ONNX calls float and double


class Type(NamedTuple):
    """The data type of a tensor (TensorProto.data_type) and its shape; None is unknown."""

    dtype: int
    shape: Shape | None


def fit(one: Shape | None, other: Shape | None) -> bool:
    """Return True if two shapes can be the same one."""
    if one is None or other is None:
        return True
    pairs = zip(one, other, strict=False)
    return len(one) == len(other) and all(a is None or b is None or a == b for a, b in pairs)


def merged(one: Shape | None, other: Shape | None) -> Shape | None:
    """Return what two shapes that fit say together."""
    if one is None or other is None:
        return one if other is None else other
    return tuple(a if a is not None else b for a, b in zip(one, other, strict=True))


def dtype_name(dtype: int) -> str:
    """Name a TensorProto.data_type: ``float32``, ``int64``."""
    import onnx

    if dtype in _FLOATS:
        return _FLOATS[dtype]
    return str(onnx.TensorProto.DataType.Name(dtype)).lower() if dtype in BITS else str(dtype)


def captured_values(node: ir.Node) -> Iterator[ir.Value]:
    """The values around a node that its subgraphs use."""
    graphs = list(graphs_of(node))
    inner = set()
    found = {}
    while graphs:
        graph = graphs.pop()
        inner |= {*graph.inputs, *graph.initializers.values()}
        for one in graph:
            inner |= {*one.outputs}
            found.update(dict.fromkeys(value for value in one.inputs if value is not None))
            graphs += graphs_of(one)
        found.update(dict.fromkeys(graph.outputs))
    yield from (value for value in found if value not in inner)


def values_read(node: ir.Node) -> list[ir.Value]:
    """Return the values that a node and its subgraphs read."""
    inputs = [value for value in node.inputs if value is not None]
    return [*inputs, *captured_values(node)] if node.attributes else inputs


def graphs_of(node: ir.Node) -> Iterator[ir.Graph]:
    """The subgraphs of a node."""
    import onnx_ir as ir

    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            yield attribute.as_graph()
        elif attribute.type == ir.AttributeType.GRAPHS:
            yield from attribute.as_graphs()


def substitute(graph: ir.Graph, old: ir.Value, new: ir.Value) -> None:
    """Replace a value that a graph and its subgraphs read."""
    for node in graph:
        for index, value in enumerate(node.inputs):
            if value is old:
                node.replace_input_with(index, new)
        for inner in graphs_of(node):
            substitute(inner, old, new)
    for index, value in enumerate(graph.outputs):
        if value is old:
            graph.outputs[index] = new


def known_extents(shape: ir.Shape | None) -> tuple[int | str | None, ...] | None:
    """Return the extents of a shape, None for one without a name."""
    if shape is None:
        return None
    return tuple(extent if isinstance(extent, int) else extent.value or None for extent in shape)
