"""The nodes that bytecode runs: what they call, and the shapes of their results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..extent import Extent, expression_of, parsed, symbols_of, value_at, written
from .types import Type, known_extents

if TYPE_CHECKING:
    import onnx_ir as ir

    from .births import Births
    from .bodies import Body
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
