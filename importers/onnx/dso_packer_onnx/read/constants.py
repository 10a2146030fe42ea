"""Values that follow from the shapes, as initialisers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import onnx_ir as ir

    from .infer import Inference


def put_constants(model: ir.Model, passes: Sequence[Inference]) -> None:
    """Replace the nodes whose outputs are the same in every call by initialisers.

    `passes` are those for the samples of the symbolic extent: a value that differs between them is
    computed. Graph outputs keep their nodes. Nodes and initialisers without a use are removed.
    """
    import numpy
    from onnx_ir.passes.common import RemoveUnusedNodesPass

    graph = model.graph
    outputs = {*graph.outputs}
    for node in [*graph]:
        for value in node.outputs:
            arrays = [one.constants.get(value) for one in passes]
            if value in outputs or any(array is None for array in arrays):
                continue
            if all(_same(numpy, arrays[0], array) for array in arrays[1:]):
                _replace(graph, value, arrays[0])
        _write_target(graph, node)
    RemoveUnusedNodesPass()(model)


def _same(numpy: Any, one: Any, other: Any) -> bool:
    alike = one.dtype == other.dtype and one.shape == other.shape
    return bool(alike and one.tobytes() == other.tobytes())


def _replace(graph: ir.Graph, value: ir.Value, array: Any) -> None:
    """Make an initialiser of a value; it takes over the name."""
    import onnx_ir as ir

    name, value.name = value.name, f"{value.name}_computed"
    tensor = ir.Tensor(array, dtype=value.dtype, name=name)
    made = ir.Value(name=name, type=value.type, shape=ir.Shape(array.shape), const_value=tensor)
    graph.register_initializer(made)
    value.replace_all_uses_with(made)


def _write_target(graph: ir.Graph, node: ir.Node) -> None:
    """Write the target of a Reshape as extents, of which -1 is the symbolic one.

    So the nodes that computed it are unused.
    """
    import numpy
    import onnx_ir as ir

    if node.op_type != "Reshape" or node.domain or node.inputs[1] is None:
        return
    target, shape = node.inputs[1], node.outputs[0].shape
    if target.const_value is not None or shape is None:
        return
    extents = [extent if isinstance(extent, int) else -1 for extent in shape]
    if 0 in extents:
        return
    array = numpy.array(extents, numpy.int64)
    tensor = ir.Tensor(array, name=f"{node.outputs[0].name}_shape")
    made = ir.Value(
        name=tensor.name,
        type=ir.TensorType(ir.DataType.INT64),
        shape=ir.Shape(array.shape),
        const_value=tensor,
    )
    graph.register_initializer(made)
    node.replace_input_with(1, made)
    if "allowzero" in node.attributes:
        node.attributes.pop("allowzero")
