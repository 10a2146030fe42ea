"""The nodes that bytecode runs: what they call, and the shapes of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..extent import Extent, expression_of, symbols_of, value_at, written
from ..extent_text import parsed
from .objects import ObjectType, put_object
from .types import Type, known_extents
from .words import name_of_node, refusal

if TYPE_CHECKING:
    import onnx_ir as ir

    from .births import Births
    from .bodies import Body, Result
    from .infer import Inference
    from .passes import Passes

KEY = "flow"  # in `ir.Node.meta`


class FlowNode(NamedTuple):
    """The bodies of a branch or a loop, and the shapes of its results."""

    bodies: tuple[Body, ...]
    arguments: tuple[tuple[int, ...], ...]  # as `Flow` has them
    shapes: tuple[tuple[int, tuple[Extent, ...]], ...]  # of each result: data type and extents
    # Where the symbols of these extents are found: an input's axis.
    places: Mapping[str, tuple[ir.Value, int]]
    born: tuple[str, ...]  # the symbols of results that data decides
    num_carried: int = -1
    call: str = ""  # of a sequence or optional: what the machine does instead of running bodies
    where: str = ""  # the name of the node


def put_types(
    node: ir.Node, one: Inference, births: Births, sample: dict[str, int], number: int
) -> None:
    """Put the types of the results of a ``dso.If`` or ``dso.Loop``, for one sample."""
    flow: FlowNode = node.meta[KEY]
    sizes = {}
    for symbol, (value, axis) in flow.places.items():
        shape = one.types[value].shape or ()
        sizes[symbol] = shape[axis] or 0
    sizes |= {symbol: births.value(symbol, sample, number) for symbol in flow.born}
    for value, (dtype, extents) in zip(node.outputs, flow.shapes, strict=True):
        one.types[value] = Type(dtype, tuple(value_at(extent, sizes) for extent in extents))


def put_bodies(
    node: ir.Node,
    kind: str,
    first: list[ir.Value | None],
    bodies: list[Body],
    shapes: Sequence[tuple[int, tuple[Extent, ...]]],
    born: list[str],
    passes: Passes,
    num_carried: int = -1,
) -> ir.Node:
    """Put the node that runs bodies in the place of one that has them."""
    inputs: list[ir.Value | None] = [*first]
    arguments = []
    for body in bodies:
        for value in body.captured:
            if not any(one is value for one in inputs[len(first) :]):
                inputs.append(value)
        at = {id(v): len(first) + i for i, v in enumerate(inputs[len(first) :])}
        arguments.append(tuple(at[id(value)] for value in body.captured))
    places = {symbol: place for body in bodies for symbol, place in body.places.items()}
    flow = FlowNode(
        tuple(bodies), tuple(arguments), tuple(shapes), places, tuple(born), num_carried
    )
    return put_flow(node, kind, inputs, flow, passes)


def with_objects(made: ir.Node, objects: Mapping[int, ObjectType]) -> ir.Node:
    """Give results of a node the types of sequences and optionals."""
    for index, type_ in objects.items():
        put_object(made.outputs[index], type_)
    return made


def one_object(node: ir.Node, passes: Passes, where: str, one: Result, other: Result) -> ObjectType:
    """Return the type of a sequence or optional that has either type."""
    merged = one.object.merged(other.object) if one.object and other.object else None
    if merged is None:
        text = f"{where}: expected one type in all bodies and calls of them, found"
        raise refused(node, passes, f"{text} {one} and {other}")
    return merged


def refused(node: ir.Node, passes: Passes, text: str) -> Exception:
    """Make the error about a node that has bodies."""
    return refusal(passes.source, f"{name_of_node(node)}: {text}")


def put_flow(
    node: ir.Node, kind: str, inputs: Sequence[ir.Value | None], flow: FlowNode, passes: Passes
) -> ir.Node:
    """Put a node of the domain ``dso`` in the place of another one."""
    import onnx_ir as ir

    graph = node.graph
    assert graph is not None
    # Equal nodes may run different bodies.
    unique = ir.AttrString("bodies", f"{node.name or ''}#{id(node)}")
    made = ir.Node("dso", kind, inputs, [unique], num_outputs=len(node.outputs), name=node.name)
    made.meta[KEY] = flow
    graph.insert_after(node, made)
    for index, (old, new) in enumerate(zip(node.outputs, made.outputs, strict=True)):
        name, old.name = old.name, None
        dtype, extents = flow.shapes[index]
        new.name = name or f"{made.name}_unused{index}"
        new.type = ir.TensorType(ir.DataType(dtype))
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        passes.births.of[new] = tuple(
            one if isinstance(one, str) and one in flow.born else None for one in extents
        )
    graph.remove(node)
    return made


def calculated(value: ir.Value) -> tuple[Extent | None, ...] | None:
    """Return the extents of a result in the symbols of the model, None where they are not known.

    None if the value is not such a result.
    """
    node = value.producer()
    flow: FlowNode | None = None if node is None else node.meta.get(KEY)
    if node is None or flow is None:
        return None
    found: list[Extent | None] = []
    for extent in flow.shapes[node.outputs.index(value)][1]:
        names = symbols_of([extent])
        outer = {name: _outer(*flow.places[name]) for name in names if name in flow.places}
        if isinstance(extent, int):
            found.append(extent)
        elif len(outer) < len(names) or None in outer.values():
            found.append(None)
        else:
            expression = parsed(extent)
            known = {one: expression_of(outer[one.name] or 0) for one in expression.free_symbols}
            found.append(written(expression.subs(known, simultaneous=True)))
    return tuple(found)


def _outer(value: ir.Value, axis: int) -> Extent | None:
    extents = known_extents(value.shape)
    return None if extents is None else extents[axis]
