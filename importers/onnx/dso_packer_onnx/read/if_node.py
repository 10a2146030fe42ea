"""``If``: the bodies of its branches, and the shapes of its results.

The shape of a result is that of both branches. An extent on which they differ is a new symbol. If
they differ in rank, the readers of the result move into the branches (`moved_nodes`). A branch for
which the nodes that moved are wrong raises an error in each call that takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from packer import ExportError

from ..extent import Extent
from .bodies import Body, Result, Symbols, make_body, raising_body
from .flow_node import one_object, put_bodies, refused, with_objects
from .moved_nodes import BRANCHES, MOST_DEPTH, MOVED, are_read, is_too_deep, move_readers
from .objects import ObjectType
from .tested import tested_extent
from .types import captured_values, dtype_name
from .words import name_of_node, shape_text

if TYPE_CHECKING:
    import onnx_ir as ir

    from .passes import Passes


def put_branch(node: ir.Node, passes: Passes) -> ir.Node | None:
    """Put an If that runs one of two bodies in the place of one that has branches.

    None if another If replaces it, which follows.
    """
    bodies = _bodies(node, passes)
    pairs = [*zip(*(body.results for body in bodies), strict=True)]
    graph = node.graph
    assert graph is not None
    of_ranks = [i for i, results in enumerate(pairs) if _ranks_differ(*results)]
    values = [node.outputs[index] for index in of_ranks]
    if values:
        passes.forget(values)  # an exporter declares what one branch gives
    if values and are_read(graph, values):
        if is_too_deep(node):
            raise _too_deep(node, passes, *pairs[of_ranks[0]])
        move_readers(node, values)
        return None
    shapes, born, objects = [], [], {}
    for index, results in enumerate(pairs):
        dtype = _dtype(node, passes, index, results)
        extents: list[Extent] = []
        if index in of_ranks:
            objects[index] = ObjectType(dtype, None, is_sequence=False)
        elif results[0].object or results[1].object:
            objects[index] = one_object(node, passes, f"output {index}", *results)
        else:
            for axis in range(len(results[0].extents)):
                known = {body.known(index, axis) for body in bodies}
                extent = known.pop()
                if known or extent is None:
                    extent = passes.births.new()
                    born.append(extent)
                extents.append(extent)
        shapes.append((dtype, tuple(extents)))
    made = put_bodies(node, "If", [node.inputs[0]], bodies, shapes, born, passes)
    return with_objects(made, objects)


def _bodies(node: ir.Node, passes: Passes) -> list[Body]:
    """Make the bodies; of nodes that moved into both branches, one may be wrong."""
    captured, symbols = list(captured_values(node)), Symbols(passes)
    made: dict[str, Body] = {}
    errors: dict[str, ExportError] = {}
    for name in BRANCHES:
        graph = node.attributes[name].as_graph()
        fixed = tested_extent(node.inputs[0], passes, equal=name == BRANCHES[0])
        for known in (None, fixed) if fixed else (None,):
            try:
                made[name] = make_body(node, graph, [], captured, passes, symbols, fixed=known)
                break
            except ExportError as error:
                errors[name] = error
    failed = [name for name in BRANCHES if name not in made]
    if len(failed) == 2 or (failed and MOVED not in node.meta):
        raise errors[failed[0]]
    for name in failed:
        (other,) = made.values()
        why = errors[name].message.removeprefix(f"{passes.source}: ")
        text = f"{name} of {name_of_node(node)} cannot run: {why}"
        made[name] = raising_body(other, text, passes.source)
    return [made[name] for name in BRANCHES]


def _ranks_differ(one: Result, other: Result) -> bool:
    """Return True for tensors of different ranks, or of one that each call decides."""
    types = [result.object for result in (one, other)]
    if any(type_ is not None and not type_.is_any_rank for type_ in types):
        return False
    return any(types) or len(one.extents) != len(other.extents)


def _dtype(node: ir.Node, passes: Passes, index: int, results: Sequence[Result]) -> int:
    dtypes = {one.dtype for one in results}
    if len(dtypes) > 1:
        found = " and ".join(f"{dtype_name(r.dtype)} {shape_text(r.extents)}" for r in results)
        text = f"output {index}: expected branches of one type, found {found}"
        raise refused(node, passes, f"{text}; cast one of them in the model")
    return dtypes.pop()


def _too_deep(node: ir.Node, passes: Passes, one: Result, other: Result) -> Exception:
    text = f"expected at most {MOST_DEPTH} branches of different ranks, one in the other, found"
    text = f"{text} {one} and {other} in one more; fix the extent that decides by input_shapes"
    return refused(node, passes, f"{text} (--input-shape)")
