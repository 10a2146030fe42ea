"""Values that follow from the shapes: as initialisers, where they are the same in every call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .evaluate import reference

if TYPE_CHECKING:
    import numpy
    import onnx_ir as ir

    from .evaluate import Arrays
    from .infer import Inference

# The elements of their output are elements of their first input, or of all for Concat.
MOVES = {"Cast", "Concat", "Expand", "Flatten", "Gather", "Identity", "Reshape", "Slice", "Split"}
MOVES |= {"Squeeze", "Tile", "Transpose", "Unsqueeze"}
_EACH = {"Add", "And", "Div", "Equal", "Max", "Min", "Mod", "Mul", "Or", "Sub", "Where"}


class OpenElements:
    """Which elements of small values follow from open extents.

    They may be equal for all samples, and another in a call: seq > 512, or the lesser of seq and 2.

    Attributes
    ----------
    elements : dict
        For a value with such elements, an array of bools of its shape.
    """

    def __init__(self) -> None:
        self.elements: dict[ir.Value, numpy.ndarray[Any, Any]] = {}

    def step(self, node: ir.Node, proto: Any, passes: Sequence[Arrays]) -> None:
        """Follow the next node; `passes` are the small values for each sample."""
        import numpy

        is_open = [value in self.elements for value in node.inputs]
        for value in node.outputs:
            arrays = [one[value] for one in passes if value in one]
            if len(arrays) < len(passes):
                continue
            first = arrays[0]
            if any(array.shape != first.shape for array in arrays):
                self.elements[value] = numpy.ones(first.shape, bool)
                continue
            differs: numpy.ndarray[Any, Any] = numpy.zeros(first.shape, bool)
            for array in arrays[1:]:
                if array.tobytes() != first.tobytes():  # NaN differs from itself
                    differs = differs | (array != first)
            if any(is_open) and not differs.all():
                differs = differs | self._followed(node, proto, passes[0], value)
            if differs.any():
                self.elements[value] = differs

    def _followed(self, node: ir.Node, proto: Any, values: Arrays, out: ir.Value) -> Any:
        """Return the elements that come from open ones; all, where it is not known."""
        import numpy

        whole = numpy.ones(values[out].shape, bool)
        if node.op_type in _EACH:
            masks = [self.elements[value] for value in node.inputs if value in self.elements]
            return whole & numpy.logical_or.reduce(numpy.broadcast_arrays(whole & False, *masks))
        data = node.inputs if node.op_type == "Concat" else node.inputs[:1]
        others = [value for value in node.inputs if value not in data]
        if node.op_type in MOVES and not any(value in self.elements for value in others):
            given = {
                value: self.elements.get(value, numpy.zeros(values[value].shape, bool))
                for value in data
            }
            given |= {value: values[value] for value in others if value is not None}
            made = dict(zip(node.outputs, reference(node, proto, given), strict=False))
            if out in made:
                return made[out].astype(bool)
        return whole


def put_constants(model: ir.Model, passes: Sequence[Inference], found: OpenElements) -> None:
    """Replace the nodes whose outputs are the same in every call by initialisers.

    `passes` are those for the samples of the open extents; values with open elements are computed.
    Graph outputs keep their nodes. Nodes and initialisers without a use are removed.
    """
    from onnx_ir.passes.common import RemoveUnusedNodesPass

    graph = model.graph
    outputs = {*graph.outputs}
    for node in [*graph]:
        for value in node.outputs:
            arrays = [one.constants.get(value) for one in passes]
            if value in outputs or any(array is None for array in arrays):
                continue
            if value not in found.elements:
                _replace(graph, value, arrays[0])
        _write_target(graph, node)
    RemoveUnusedNodesPass()(model)


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
