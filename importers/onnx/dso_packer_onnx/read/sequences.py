"""The operators of sequences and optionals.

A sequence whose tensors are values of the graph is known while packing: its length, what is at a
place, and their concatenation are other operators of ONNX. Each other operator becomes one of the
domain ``dso``, which runs a built-in function of the machine, or a Loop that is made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .flow import FlowNode, put_flow
from .objects import EmptyError, Extents, ObjectType, declared_object, object_of, put_object
from .open_shapes import advice
from .sequence_loops import concatenation, parsed_graph, parts_of
from .types import dtype_name
from .words import name_of_node, refusal

if TYPE_CHECKING:
    import onnx_ir as ir

    from packer import ExportError

    from .passes import Passes

_FLOAT, _INT64, _BOOL = 1, 7, 9
_Rule = Callable[["_Node"], None]


def runs_here(node: ir.Node) -> bool:
    """Return True for an operator of sequences or optionals."""
    if node.domain:
        return False
    return node.op_type in _RULES or (node.op_type == "Identity" and _is_object(node.inputs[0]))


def run(node: ir.Node, passes: Passes) -> None:
    """Replace such an operator by others, and infer its result."""
    _RULES.get(node.op_type, _same)(_Node(node, passes))


def _is_object(value: ir.Value | None) -> bool:
    return object_of(value) is not None


class _Node:
    """A node that is replaced."""

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
        return tuple(one[0] if len({*one}) == 1 else None for one in zip(*shapes, strict=True))

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
        """Let the nodes of a graph, which are inferred next, take the place of the node."""
        graph = parsed_graph(text, self.new_name(""))
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


def _empty(node: _Node) -> None:
    dtype = node.node.attributes.get_int("dtype", _FLOAT)
    node.call("Construct", [], ObjectType(dtype, None, is_sequence=True, is_empty=True), [])


def _construct(node: _Node) -> None:
    items = [value for value in node.node.inputs if value is not None]
    first = node.passes.all[0].types[items[0]].dtype
    type_ = ObjectType(first, None, is_sequence=True, is_empty=True)
    for value in items:
        type_ = node.with_item(type_, value)
    node.call("Construct", items, type_, items)


def _insert(node: _Node) -> None:
    items, value = node.items(0), node.given(1)
    type_ = node.with_item(node.type_of(0), value)
    place = len(items or ())
    if items is not None and node.has(2):
        found = node.place(2, items, most=1)
        items, place = (None, 0) if found is None else (items, found)
    if items is not None:
        items = [*items[:place], value, *items[place:]]
        return node.call("Construct", items, type_, items)
    position = [node.int64(2)] if node.has(2) else []
    return node.call("Insert", [node.given(0), value, *position], type_)


def _erase(node: _Node) -> None:
    items, type_ = node.items(0), node.type_of(0)
    if items is not None:
        place = node.place(1, items) if node.has(1) else len(items) - 1
        if place is not None:
            items = [*items[:place], *items[place + 1 :]]
            type_ = type_._replace(is_empty=not items)
            return node.call("Construct", items, type_, items)
    position = [node.int64(1)] if node.has(1) else []
    return node.call("Erase", [node.given(0), *position], type_)


def _at(node: _Node) -> None:
    items, type_ = node.items(0), node.type_of(0)
    if items == []:
        raise node.empty("expected a tensor, found an empty sequence")
    place = None if items is None else node.place(1, items)
    if items is not None and place is not None:
        return node.become("Identity", [items[place]])
    return node.call("At", [node.given(0), node.int64(1)], _tensor(node, type_))


def _tensor(node: _Node, type_: ObjectType) -> tuple[int, Extents]:
    if type_.extents is None:
        text = f"the rank of the tensors of {type_}, expected one for all, found different or"
        raise node.refusal(f"{text} unknown ones; declare it in the type of the input")
    return type_.dtype, type_.extents


def _length(node: _Node) -> None:
    items = node.items(0)
    if items is None:
        node.call("Length", [node.given(0)], (_INT64, ()))
    else:
        node.become("Constant", [], value_int=len(items))


def _concat(node: _Node) -> None:
    items, axis = node.items(0), node.node.attributes.get_int("axis", 0)
    is_new = bool(node.node.attributes.get_int("new_axis", 0))
    if items == []:
        raise node.empty("expected a tensor, found an empty sequence")
    if items is None:
        _, extents = _tensor(node, node.type_of(0))
        return node.put_nodes(concatenation(len(extents), axis, is_new), [node.given(0)])
    if is_new:
        axes = node.passes.constant(node.new_name("axes"), [axis])
        items = [node.insert("Unsqueeze", [item, axes]) for item in items]
    return node.become("Concat", items, axis=axis)


def _split(node: _Node) -> None:
    value, axis = node.given(0), node.node.attributes.get_int("axis", 0)
    extents, dtype = node.extents(value), node.passes.all[0].types[value].dtype
    axis %= max(len(extents), 1)
    keeps = bool(node.node.attributes.get_int("keepdims", 1)) or node.has(1)
    if node.has(1) and node.extents(node.given(1)):
        sizes, count = node.int64(1), node.extents(node.given(1))[0]
        if count is None:
            raise node.refusal("input 'split', expected a fixed number of parts, found an open one")
        parts = [*node.split(value, sizes, axis, count)] if count else []
    else:
        size = node.number(1) if node.has(1) else 1
        if size is None or size < 1:
            why = f"; {advice(node.node, node.passes.all[0].constants)}" if size is None else ""
            text = "input 'split', expected a number of at least 1 that each call has, found"
            raise node.refusal(f"{text} {'another' if size is None else size}{why}")
        extent = extents[axis]
        if extent is None:
            return node.put_nodes(parts_of(axis, size, keeps, dtype), [value])
        numbers = [min(size, extent - start) for start in range(0, extent, size)]
        sizes = node.passes.constant(node.new_name("sizes"), numbers)
        parts = [*node.split(value, sizes, axis, len(numbers))] if numbers else []
    if not keeps:
        axes = node.passes.constant(node.new_name("axes"), [axis])
        parts = [node.insert("Squeeze", [part, axes]) for part in parts]
    if parts:
        return node.become("SequenceConstruct", parts)
    return node.become("SequenceEmpty", [], dtype=dtype)


def _same(node: _Node) -> None:
    node.call("Same", [node.given(0)], node.type_of(0), node.items(0))


def _optional(node: _Node) -> None:
    import onnx_ir as ir

    if not node.has(0):
        kind = node.node.attributes["type"].value
        type_ = declared_object(ir.Value(type=ir.OptionalType(kind.type), shape=kind.shape))
        assert type_ is not None
        return node.call("Empty", [], type_._replace(has_value=False))
    value = node.given(0)
    known = object_of(value)
    if known is None:
        dtype, extents = node.passes.all[0].types[value].dtype, node.extents(value)
        known = ObjectType(dtype, extents, is_sequence=False)
    type_ = known._replace(is_optional=True, has_value=True)
    return node.call("Same", [value], type_, node.items(0))


def _has(node: _Node) -> None:
    import numpy
    import onnx_ir as ir

    type_ = object_of(node.given(0)) if node.has(0) else None
    known: bool | None = node.has(0)
    if type_ is not None and type_.is_optional:
        known = type_.has_value
    if known is None:
        node.call("Has", [node.given(0)], (_BOOL, ()))
    else:
        node.become("Constant", [], value=ir.Tensor(numpy.array(known)))


def _get(node: _Node) -> None:
    type_ = object_of(node.given(0))
    if type_ is None:
        return node.become("Identity", [node.given(0)])
    if type_.has_value is False:
        raise node.empty("expected an optional with a value, found one without")
    if type_.is_sequence:
        made = type_._replace(is_optional=False, has_value=None)
        return node.call("Get", [node.given(0)], made, node.items(0))
    return node.call("Get", [node.given(0)], _tensor(node, type_))


_RULES: dict[str, _Rule] = {
    "ConcatFromSequence": _concat,
    "Optional": _optional,
    "OptionalGetElement": _get,
    "OptionalHasElement": _has,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SequenceLength": _length,
    "SplitToSequence": _split,
}
