"""Matching and replacing nodes, as every rewrite does it.

A rewrite looks at the neighbours of a node, and replaces the last node of a match. Nodes that no
longer have a use are removed at once, so that `only_use` sees no dead consumers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import onnx_ir as ir

from ..extent import Extent, product
from .record import record_fold

DSO = "dso"  # the domain of fused operators
Array = np.ndarray[Any, np.dtype[Any]]
HALVES = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
Dim: TypeAlias = "int | ir.SymbolicDim"


# ---- Values ----


def constant(value: ir.Value | None) -> Array | None:
    """Return the elements of a constant, or None if the value is computed or an input."""
    if value is None or value.const_value is None or value.is_graph_input():
        return None
    array: Array = value.const_value.numpy()
    return array


def is_constant(value: ir.Value | None) -> bool:
    """Return True if `constant` would return elements; reads none of them."""
    return value is not None and value.const_value is not None and not value.is_graph_input()


def scalar(value: ir.Value | None) -> float | None:
    """Return the number if the value is a constant of one element."""
    if value is None or not is_constant(value) or value.const_value.size != 1:
        return None
    return float(value.const_value.numpy().reshape(()))


def uniform(value: ir.Value | None) -> float | None:
    """Return the number if the value is a constant whose elements are all equal."""
    array = constant(value)
    if array is None or array.size == 0 or array.dtype.kind == "O":
        return None
    first = array.reshape(-1)[0]
    return float(first) if np.all(array == first) else None


def ints(value: ir.Value | None) -> list[int] | None:
    """Return the elements of a constant vector of integers."""
    array = constant(value)
    return None if array is None else [int(item) for item in array.reshape(-1)]


def dims(value: ir.Value | None) -> tuple[Dim, ...] | None:
    """Return the extents of a value, or None if its rank is not known."""
    if value is None or value.shape is None:
        return None
    return tuple(value.shape)


def as_extent(extent: Dim) -> Extent:
    """Return an extent of a shape as a number or the text of an expression."""
    return extent if isinstance(extent, int) else str(extent.value)


def times(a: Dim, b: Dim) -> Dim:
    """Return the product of two extents."""
    made = product(map(as_extent, (a, b)))
    return made if isinstance(made, int) else ir.SymbolicDim(made)


def is_float32(*values: ir.Value | None) -> bool:
    """Return True if every value exists and has float32 elements."""
    return all(value is not None and value.dtype == ir.DataType.FLOAT for value in values)


def is_factor(value: ir.Value | None) -> bool:
    """Return True for float32, and for constants of float16 and bfloat16, which kernels widen."""
    is_half = value is not None and value.dtype in HALVES
    return is_float32(value) or (is_half and is_constant(value))


def equal_dims(a: Sequence[Dim], b: Sequence[Dim]) -> bool:
    """Return True if two shapes are known to be equal; an extent without a name equals none."""
    return len(a) == len(b) and all(
        x == y and (isinstance(x, int) or x.value is not None) for x, y in zip(a, b, strict=True)
    )


def same_shape(a: ir.Value | None, b: ir.Value | None) -> bool:
    """Return True if both values are known to have equal shapes."""
    x, y = dims(a), dims(b)
    return x is not None and y is not None and equal_dims(x, y)


def only_use(value: ir.Value) -> ir.Node | None:
    """Return the node that alone reads a value, once and in the same graph; else None."""
    uses = value.uses()
    if len(uses) != 1 or value.is_graph_output():
        return None
    (use,) = uses
    return use.node if use.node.graph is value.graph else None


def only_reads(node: ir.Node, value: ir.Value) -> bool:
    """Return True if no other node reads a value."""
    return only_use(value) is node


def made_by(value: ir.Value | None, *kinds: str, domain: str = "") -> ir.Node | None:
    """Return the node that computes a value if it is one of these operators."""
    node = value.producer() if value is not None else None
    if node is None or node.domain != domain or node.op_type not in kinds:
        return None
    return node


def other_input(node: ir.Node, value: ir.Value) -> ir.Value | None:
    """Return the input of a binary node that is not `value`; `value` itself if it is both."""
    first, second = node.inputs
    return second if first is value else first


def optional(node: ir.Node, index: int) -> ir.Value | None:
    """Return an input, or None if it was left out."""
    return node.inputs[index] if index < len(node.inputs) else None


def is_node(node: ir.Node | None, *kinds: str, domain: str = "") -> bool:
    """Return True if the node is one of these operators."""
    return node is not None and node.domain == domain and node.op_type in kinds


def only_first_output(node: ir.Node) -> bool:
    """Return True if nothing reads the outputs after the first one."""
    return not any(value.uses() or value.is_graph_output() for value in node.outputs[1:])


# ---- Changes ----


def new_weight(model: ir.Model, name: str, array: Array) -> ir.Value:
    """Add a constant to the graph; its name is `name`, or this with a number if it is taken."""
    free, number = name, 1
    while free in model.graph.initializers:
        free, number = f"{name}.{number}", number + 1
    tensor = ir.Tensor(np.ascontiguousarray(array), name=free)
    value = ir.Value(
        name=free, shape=ir.Shape(array.shape), type=ir.TensorType(tensor.dtype), const_value=tensor
    )
    model.graph.register_initializer(value)
    return value


def reshape(model: ir.Model, value: ir.Value, shape: Sequence[Dim]) -> ir.Node:
    """Make a Reshape; -1 stands for each open extent in its target, which nothing reads."""
    target = np.array([one if isinstance(one, int) else -1 for one in shape], np.int64)
    fixed = new_weight(model, f"shape.{'x'.join(map(str, target))}", target)
    dtype = value.dtype or ir.DataType.FLOAT
    return new_node("Reshape", [value, fixed], shape=shape, dtype=dtype)


def changed_weight(model: ir.Model, value: ir.Value, array: Array, why: str) -> ir.Value:
    """Return a constant with other elements; it keeps the name if nothing else reads the old one.

    `why` is recorded for the old name: the stored elements no longer equal the model's.
    """
    alone = len(value.uses()) == 1 and not value.is_graph_output()
    if alone and value.shape is not None and tuple(value.shape) == array.shape:
        value.const_value = ir.Tensor(np.ascontiguousarray(array), name=value.name)
        value.type = ir.TensorType(value.const_value.dtype)
        record_fold(model, value, value, why)
        return value
    found = new_weight(model, str(value.name), array)
    record_fold(model, value, found, why)
    return found


def new_node(
    kind: str,
    inputs: Sequence[ir.Value | None],
    attributes: Mapping[str, Any] | None = None,
    *,
    like: ir.Value | None = None,
    shape: Sequence[Dim] | None = None,
    dtype: ir.DataType = ir.DataType.FLOAT,
    name: str | None = None,
    domain: str = "",
) -> ir.Node:
    """Make a node with one output, of the type of `like` or of `shape` and `dtype`."""
    made = [attribute(key, value) for key, value in (attributes or {}).items()]
    node = ir.Node(domain, kind, inputs, made, name=name)
    (output,) = node.outputs
    if like is not None:
        output.type, shape = like.type, dims(like)
    else:
        output.type = ir.TensorType(dtype)
    output.shape = None if shape is None else ir.Shape(shape)
    return node


def attribute(name: str, value: Any) -> ir.Attr:
    """Make an attribute; ir.node does the same with checks that take most of a rewrite's time."""
    if isinstance(value, ir.Attr):
        return value
    if isinstance(value, int):
        return ir.AttrInt64(name, value)
    if isinstance(value, float):
        return ir.AttrFloat32(name, value)
    if isinstance(value, str):
        return ir.AttrString(name, value)
    if isinstance(value, ir.Graph):
        return ir.AttrGraph(name, value)
    if any(isinstance(item, str) for item in value):  # extents
        return ir.AttrStrings(name, [str(item) for item in value])
    return ir.AttrInt64s(name, [int(item) for item in value])


def replace(
    last: ir.Node,
    new: Sequence[ir.Node],
    value: ir.Value | None = None,
    old: ir.Value | None = None,
) -> None:
    """Put nodes in the place of `last`, whose first output becomes that of the last new node.

    Parameters
    ----------
    last : ir.Node
        The node to remove, and with it all nodes that only it needed.
    new : sequence of ir.Node
        Nodes in order; they are inserted where `last` was.
    value : ir.Value, optional
        Take this value in place of the output, instead of that of the last new node.
    old : ir.Value, optional
        Replace this output of `last`, instead of the first one.
    """
    graph = last.graph
    assert isinstance(graph, ir.Graph)
    old = last.outputs[0] if old is None else old
    graph.insert_before(last, list(new))
    result = value if value is not None else new[-1].outputs[0]
    if old.is_graph_output():
        result = _as_output(graph, last, old, result)
    elif value is None:
        name, old.name = old.name, None
        result.name = name
    old.replace_all_uses_with(result)
    remove_unused(last)


def _as_output(graph: ir.Graph, last: ir.Node, old: ir.Value, result: ir.Value) -> ir.Value:
    """Give a result the name of an output of the graph, and its place there."""
    fixed = result.is_graph_input() or result.is_graph_output() or is_constant(result)
    if fixed or result.producer() is None:
        copy = new_node("Identity", [result], like=old)
        graph.insert_before(last, copy)
        result = copy.outputs[0]
    name, old.name = old.name, None
    result.name = name
    for index, output in enumerate(graph.outputs):
        if output is old:
            graph.outputs[index] = result
    return result


def remove_unused(node: ir.Node) -> None:
    """Remove a node without uses, and then the nodes and constants that only it needed."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        graph = node.graph
        if graph is None or any(v.uses() or v.is_graph_output() for v in node.outputs):
            continue
        inputs = [value for value in node.inputs if value is not None]
        graph.remove(node, safe=True)
        for value in inputs:
            if value.uses() or value.is_graph_output():
                continue
            maker = value.producer()
            if maker is not None:
                waiting.append(maker)
            elif value.is_initializer() and not value.is_graph_input() and value.graph is not None:
                value.graph.initializers.pop(str(value.name), None)
