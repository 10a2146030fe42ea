"""A node of sequences or optionals, which other nodes replace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .flow_node import FlowNode, put_flow
from .objects import EmptyError, Extents, ObjectType, object_of, put_object
from .sequence_loops import parsed_graph
from .types import dtype_name
from .words import name_of_node, refusal

if TYPE_CHECKING:
    import onnx_ir as ir

    from packer import ExportError

    from .passes import Passes

_INT64 = 7  # TensorProto.DataType


class ReplacedNode:
    """The node, and what each sample knows of its inputs."""

    def __init__(self, node: ir.Node, passes: Passes) -> None:
        self.node, self.passes = node, passes
        self._made = 0

    @property
    def graph(self) -> ir.Graph:
        assert self.node.graph is not None
        return self.node.graph

    def given(self, index: int) -> ir.Value:
        value = self.node.inputs[index]
        assert value is not None
        return value

    def has(self, index: int) -> bool:
        return index < len(self.node.inputs) and self.node.inputs[index] is not None

    def type_of(self, index: int) -> ObjectType:
        found = object_of(self.given(index))
        if found is None:
            raise self.refusal(f"input {index}, expected a sequence or an optional, found a tensor")
        return found

    def items(self, index: int) -> list[ir.Value] | None:
        """Return the tensors of a sequence, if they are known."""
        return self.passes.items.get(self.given(index))

    def number(self, index: int) -> int | None:
        """Return the number that an input has in every call."""
        value = self.given(index)
        arrays = [one.constants.get(value) for one in self.passes.all]
        if value in self.passes.open.elements or any(array is None for array in arrays):
            return None
        return int(arrays[0].reshape(-1)[0])  # type: ignore[union-attr]

    def place(self, index: int, items: Sequence[object], most: int = 0) -> int | None:
        """Return a known place in known tensors, counted from the start."""
        number, count = self.number(index), len(items)
        if number is not None and not -count <= number < count + most:
            text = f"position {number} in a sequence of {count} tensors"
            raise self.refusal(f"{text}, expected {-count} to {count + most - 1}")
        return number if number is None or number >= 0 else number + count

    def extents(self, value: ir.Value) -> Extents:
        """Return the extents of a tensor, None for one that may differ between calls."""
        shapes = [one.types[value].shape or () for one in self.passes.all]
        limited = self.passes.limited.of.get(value, ())
        axes = enumerate(zip(*shapes, strict=True))
        return tuple(
            one[0] if len({*one}) == 1 and axis not in limited else None for axis, one in axes
        )

    def with_item(self, type_: ObjectType, value: ir.Value) -> ObjectType:
        """Return the type of a sequence with a further tensor."""
        dtype = self.passes.all[0].types[value].dtype
        found = type_.merged(ObjectType(dtype, self.extents(value), is_sequence=True))
        if found is None:
            text = f"a tensor of {dtype_name(type_.dtype)} as the others, found"
            raise self.refusal(f"expected {text} {dtype_name(dtype)}")
        return found

    def new_name(self, word: str) -> str:
        """Return the name of a further value."""
        stem = next(str(value.name) for value in self.node.outputs if value.name)
        self._made += 1
        return f"{stem}_{word}{self._made}"

    def insert(self, kind: str, inputs: Sequence[ir.Value | None], **attributes: int) -> ir.Value:
        """Insert a node before this one, and infer it; returns its output."""
        return self._inserted(kind, inputs, 1, attributes)[0]

    def split(self, value: ir.Value, sizes: ir.Value, axis: int, count: int) -> Sequence[ir.Value]:
        """Insert a Split."""
        return self._inserted("Split", [value, sizes], count, {"axis": axis})

    def _inserted(
        self, kind: str, inputs: Sequence[ir.Value | None], count: int, attributes: dict[str, int]
    ) -> Sequence[ir.Value]:
        import onnx_ir as ir

        given = [ir.AttrInt64(name, number) for name, number in attributes.items()]
        made = ir.Node("", kind, inputs, given, num_outputs=count)
        for value in made.outputs:
            value.name = self.new_name(kind.lower())
        self.graph.insert_before(self.node, made)
        self.passes.step(made)
        return list(made.outputs)

    def put_nodes(self, text: str, inputs: Sequence[ir.Value]) -> None:
        """Let the nodes of a graph as text, which are inferred next, take the place of the node."""
        self.put_graph(parsed_graph(text, self.new_name("")), inputs)

    def put_graph(self, graph: ir.Graph, inputs: Sequence[ir.Value]) -> None:
        """Do so for a graph whose names are new in the model."""
        for name, inner in [*graph.initializers.items()]:
            graph.initializers.pop(name)
            self.graph.register_initializer(inner)
            self.passes.put_constant(inner)
        for inner, value in zip(graph.inputs, inputs, strict=True):
            inner.replace_all_uses_with(value)
        nodes, (result,) = [*graph], graph.outputs
        graph.outputs.clear()
        graph.remove(nodes)
        self.graph.insert_after(self.node, nodes)
        self.take_over(result)

    def int64(self, index: int) -> ir.Value:
        value = self.given(index)
        is_int64 = self.passes.all[0].types[value].dtype == _INT64
        return value if is_int64 else self.insert("Cast", [value], to=_INT64)

    def become(self, kind: str, inputs: Sequence[ir.Value | None], **attributes: object) -> None:
        """Let an operator of ONNX, which is inferred next, take the place of the node."""
        import onnx_ir as ir

        attributes_ = ir.convenience.convert_attributes(attributes)
        made = ir.Node("", kind, inputs, attributes_, num_outputs=1, name=self.node.name)
        self.graph.insert_after(self.node, made)
        self.take_over(made.outputs[0])

    def take_over(self, new: ir.Value) -> None:
        """Let a value take the place of the node's first output; removes the node."""
        old = self.node.outputs[0]
        name, old.name = old.name, None
        new.name, new.type = name, old.type
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        self.graph.remove(self.node)

    def call(
        self,
        kind: str,
        inputs: Sequence[ir.Value | None],
        result: ObjectType | tuple[int, Extents],
        items: list[ir.Value] | None = None,
    ) -> None:
        """Let a function of the machine make the result; None in a shape is a new symbol."""
        type_ = result if isinstance(result, ObjectType) else None
        dtype, extents = (type_.dtype, ()) if type_ else result  # type: ignore[misc]
        shape = tuple(self.passes.births.new() if one is None else one for one in extents)
        born = tuple(one for one in shape if isinstance(one, str))
        flow = FlowNode(
            (), (), ((dtype, shape),), {}, born, call=kind, where=name_of_node(self.node)
        )
        made = put_flow(self.node, f"Sequence{kind}", inputs, flow, self.passes)
        if type_:
            put_object(made.outputs[0], type_)
        if items is not None:
            self.passes.items[made.outputs[0]] = items
        self.passes.put(made)

    def refusal(self, text: str) -> ExportError:
        return refusal(self.passes.source, f"{name_of_node(self.node)}: {text}")

    def empty(self, text: str) -> EmptyError:
        made = self.refusal(text)
        return EmptyError(made.message, path=made.path)
