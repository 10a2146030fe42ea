"""Branches and loops that run: each body is a model, which the node calls with what it reads.

``If``, ``Loop`` and ``Scan`` become ``dso.If`` and ``dso.Loop``. The inputs of a body are what the
loop carries and what the body captures; their extents have symbols of the body. The shape of a
result is that of the bodies. An extent that rounds change is a new symbol.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ..extent import Extent
from ..operator import shape_of
from .bodies import Body, Result, Symbols, make_body
from .flow_node import one_object, put_bodies, refused, with_objects
from .if_node import put_branch
from .objects import EmptyError, ObjectType, declared_object, object_of
from .scan import loop_of_scan
from .types import captured_values, dtype_name

if TYPE_CHECKING:
    import onnx_ir as ir

    from .passes import Passes

KINDS = ("If", "Loop", "Scan")
_ROUNDS, _CONDITION, _CARRIED = 0, 1, 2  # inputs of a Loop


def run_bodies(node: ir.Node, passes: Passes) -> None:
    """Replace a node that has bodies by one that runs them, and infer its results."""
    graph = node.graph
    assert graph is not None
    if node.op_type == "Scan":
        node = loop_of_scan(node, passes)
    made = put_branch(node, passes) if node.op_type == "If" else _loop(node, passes)
    if made is not None:
        passes.put(made)


def _loop(node: ir.Node, passes: Passes) -> ir.Node:
    node.resize_inputs(max(len(node.inputs), _CARRIED))
    carried = [value for value in node.inputs[_CARRIED:] if value is not None]
    captured = list(captured_values(node))
    graph = node.attributes["body"].as_graph()
    changing: dict[tuple[int, int], str] = {}  # by carried value and axis
    objects = {i: one for i, value in enumerate(carried) if (one := object_of(value))}
    while True:
        symbols = Symbols(passes)
        try:
            body = make_body(node, graph, carried, captured, passes, symbols, changing, objects)
        except EmptyError as error:
            objects = _declared(graph, objects, error)
            continue
        before = len(changing), dict(objects)
        for index, value in enumerate(carried):
            result = body.results[1 + index]
            if index in objects:
                first = Result(objects[index].dtype, (), objects[index])
                where = f"carried value {index}"
                objects[index] = one_object(node, passes, where, first, result)
            else:
                _add_changes(node, passes, body, index, value, changing)
        if (len(changing), objects) == before:
            break
    shapes, born = [], list(changing.values())
    for index in range(len(carried)):
        result = body.results[1 + index]
        extents = [
            changing.get((index, axis)) or body.known(1 + index, axis)
            for axis in range(len(result.extents))
        ]
        shapes.append((result.dtype, _all_known(extents, passes, born)))
    rounds: Extent | None = None
    for index in range(1 + len(carried), len(body.results)):
        if rounds is None:
            rounds = _known_rounds(node, body, passes)
            rounds = _all_known([rounds], passes, born)[0]
        result = body.results[index]
        if result.object:
            text = f"scan output {index - len(carried) - 1}, expected a tensor, found {result}"
            raise refused(node, passes, text)
        inner = [body.known(index, axis) for axis in range(len(result.extents))]
        shapes.append((result.dtype, (rounds, *_all_known(inner, passes, born))))
    made = put_bodies(node, "Loop", [*node.inputs], [body], shapes, born, passes, len(carried))
    for index, value in enumerate(carried):
        fixed = [a for a in range(len(shapes[index][1])) if (index, a) not in changing]
        passes.births.assumed += [((made.outputs[index], axis), (value, axis)) for axis in fixed]
    return with_objects(made, objects)


def _declared(
    graph: ir.Graph, objects: Mapping[int, ObjectType], error: EmptyError
) -> dict[int, ObjectType]:
    """Return the types of carried sequences that a body declares, if those are empty."""
    made = dict(objects)
    for index, type_ in objects.items():
        declared = declared_object(graph.inputs[_CARRIED + index])
        if type_.is_empty and declared is not None and declared.extents is not None:
            made[index] = declared
    if made == objects:
        raise error
    return made


def _all_known(
    extents: Sequence[Extent | None], passes: Passes, born: list[str]
) -> tuple[Extent, ...]:
    """Return extents with a new symbol for each that is not known before the node runs."""
    made: list[Extent] = []
    for extent in extents:
        if extent is None:
            extent = passes.births.new()
            born.append(extent)
        made.append(extent)
    return tuple(made)


def _add_changes(
    node: ir.Node,
    passes: Passes,
    body: Body,
    index: int,
    value: ir.Value,
    changing: dict[tuple[int, int], str],
) -> None:
    """Note which axes of a carried value a round changes."""
    result, types = body.results[1 + index], [one.types[value] for one in passes.all]
    rank = len(types[0].shape or ())
    if result.object or result.dtype != types[0].dtype or len(result.extents) != rank:
        text = f"carried value {index}: expected {dtype_name(types[0].dtype)} of {rank} axes after"
        raise refused(node, passes, f"{text} a round, found {result}")
    before = shape_of(body.model.graph.inputs[_CARRIED + index])
    for axis in range(rank):
        sizes = tuple((type_.shape or ())[axis] for type_ in types)
        is_equal = body.sizes(1 + index, axis) == sizes
        is_known = result.extents[axis] == before[axis] or len({*sizes}) > 1
        is_apart = (str(node.outputs[index].name), axis) in passes.births.apart
        if (index, axis) not in changing and (is_apart or not (is_equal and is_known)):
            changing[index, axis] = passes.births.new()


def _known_rounds(node: ir.Node, body: Body, passes: Passes) -> Extent | None:
    """Return how many rounds a Loop has; None if its condition or data decides."""
    rounds, condition = node.inputs[_ROUNDS], node.inputs[_CONDITION]
    first = [True if condition is None else one.constants.get(condition) for one in passes.all]
    if any(one is None or not one for one in first) or not body.always_goes_on or rounds is None:
        return None
    if rounds in passes.open.elements:
        return None
    numbers = {
        int(one.constants[rounds].reshape(-1)[0]) if rounds in one.constants else None
        for one in passes.all
    }
    number = numbers.pop()
    return None if numbers or number is None else max(number, 0)
