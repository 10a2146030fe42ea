"""The operators of sequences and optionals.

A sequence whose tensors are values of the graph is known while packing: its length, what is at a
place, and their concatenation are other operators of ONNX. Each other operator becomes one of the
domain ``dso``, which runs a built-in function of the machine, or a Loop that is made of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .objects import Extents, ObjectType, declared_object, object_of
from .replaced_node import ReplacedNode
from .sequence_loops import concatenation, parts_of, parts_of_sizes
from .tensors import check_dtype
from .words import name_of_node

if TYPE_CHECKING:
    import onnx_ir as ir

    from .passes import Passes

_FLOAT, _INT64, _BOOL = 1, 7, 9
_Rule = Callable[[ReplacedNode], None]


def runs_here(node: ir.Node) -> bool:
    """Return True for an operator of sequences or optionals."""
    if node.domain:
        return False
    return node.op_type in _RULES or (node.op_type == "Identity" and _is_object(node.inputs[0]))


def run(node: ir.Node, passes: Passes) -> None:
    """Replace such an operator by others, and infer its result."""
    _RULES.get(node.op_type, _same)(ReplacedNode(node, passes))


def _is_object(value: ir.Value | None) -> bool:
    return object_of(value) is not None


def _empty(node: ReplacedNode) -> None:
    dtype = node.node.attributes.get_int("dtype", _FLOAT)
    check_dtype(dtype, node.passes.source, f"{name_of_node(node.node)}: attribute 'dtype'")
    node.call("Construct", [], ObjectType(dtype, None, is_sequence=True, is_empty=True), [])


def _construct(node: ReplacedNode) -> None:
    items = [value for value in node.node.inputs if value is not None]
    first = node.passes.all[0].types[items[0]].dtype
    type_ = ObjectType(first, None, is_sequence=True, is_empty=True)
    for value in items:
        type_ = node.with_item(type_, value)
    node.call("Construct", items, type_, items)


def _insert(node: ReplacedNode) -> None:
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


def _erase(node: ReplacedNode) -> None:
    items, type_ = node.items(0), node.type_of(0)
    if items is not None:
        place = node.place(1, items) if node.has(1) else len(items) - 1
        if place is not None:
            items = [*items[:place], *items[place + 1 :]]
            type_ = type_._replace(is_empty=not items)
            return node.call("Construct", items, type_, items)
    position = [node.int64(1)] if node.has(1) else []
    return node.call("Erase", [node.given(0), *position], type_)


def _at(node: ReplacedNode) -> None:
    items, type_ = node.items(0), node.type_of(0)
    if items == []:
        raise node.empty("expected a tensor, found an empty sequence")
    place = None if items is None else node.place(1, items)
    if items is not None and place is not None:
        return node.become("Identity", [items[place]])
    return node.call("At", [node.given(0), node.int64(1)], _tensor(node, type_))


def _tensor(node: ReplacedNode, type_: ObjectType) -> tuple[int, Extents]:
    if type_.extents is None:
        text = f"the rank of the tensors of {type_}, expected one for all, found different or"
        raise node.refusal(f"{text} unknown ones; declare it in the type of the input")
    return type_.dtype, type_.extents


def _length(node: ReplacedNode) -> None:
    items = node.items(0)
    if items is None:
        node.call("Length", [node.given(0)], (_INT64, ()))
    else:
        node.become("Constant", [], value_int=len(items))


def _concat(node: ReplacedNode) -> None:
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


def _split(node: ReplacedNode) -> None:
    value, axis = node.given(0), node.node.attributes.get_int("axis", 0)
    extents, dtype = node.extents(value), node.passes.all[0].types[value].dtype
    if not extents:
        raise node.refusal("input 'input', expected an axis, found a scalar")
    if node.has(1) and len(node.extents(node.given(1))) > 1:
        raise node.refusal("input 'split', expected a number or a vector, found several axes")
    axis %= len(extents)
    keeps = bool(node.node.attributes.get_int("keepdims", 1)) or node.has(1)
    if node.has(1) and node.extents(node.given(1)):
        sizes, count = node.int64(1), node.extents(node.given(1))[0]
        if count is None:
            graph = parts_of_sizes(axis, has_one=False, dtype=dtype)
            return node.put_nodes(graph, [value, sizes])
        parts = [*node.split(value, sizes, axis, count)] if count else []
    else:
        size = node.number(1) if node.has(1) else 1
        if size is None:
            graph = parts_of_sizes(axis, has_one=True, dtype=dtype)
            return node.put_nodes(graph, [value, node.int64(1)])
        if size < 1:
            raise node.refusal(f"input 'split', expected a number of at least 1, found {size}")
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


def _same(node: ReplacedNode) -> None:
    node.call("Same", [node.given(0)], node.type_of(0), node.items(0))


def _optional(node: ReplacedNode) -> None:
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


def _has(node: ReplacedNode) -> None:
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


def _get(node: ReplacedNode) -> None:
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
