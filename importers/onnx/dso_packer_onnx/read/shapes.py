"""Shapes for all values of a model: static, or with one symbolic extent.

The symbolic extent is not calculated with: the shapes are inferred for two values of it. An
extent that is equal in both is static, and one that is the value itself is symbolic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from packer import ExportError
from packer.files.arguments import list_of
from runtime.error import listed, near_names, shown

from .constants import put_constants
from .infer import Inference
from .loops import take_branch
from .types import Type, graphs_of
from .words import name_of_node, refusal, shape_text

if TYPE_CHECKING:
    import onnx_ir as ir

SAMPLES = (1, 61)  # values of the symbolic extent
Given = tuple[int | str | None, ...]


def with_shapes(
    model: ir.Model,
    shapes: Mapping[str, Sequence[int | str]] | None = None,
    dynamic: Sequence[str] = (),
) -> ir.Model:
    """Return a copy of a model in which every value has a data type and a shape.

    Values that follow from the shapes become initialisers, and nodes that nothing uses go.

    Parameters
    ----------
    model : onnx_ir.Model
        Of `read_model`; it is not changed. The copy shares its weights.
    shapes : mapping of str to sequence of int or str, optional
        The shape of each input to change. An extent may be the name in `dynamic`.
    dynamic : sequence of str
        At most one name of an extent that each call decides. It must be that of the first axis.

    Returns
    -------
    onnx_ir.Model
        Its extents are ints, or ``ir.SymbolicDim`` of that name or of a multiple, ``"4*batch"``.
        Inputs have it at the first axis alone; `check_batch_first` checks other values.

    Raises
    ------
    ExportError
        If an extent is left open, with the inputs and their open extents; if the shapes do not
        fit a node, with its name; if a shape depends on data.
    """
    source = model.meta.get("source", "model")
    name = _dynamic_name(dynamic, source)
    inputs, changed = _input_shapes(model, _checked(model, shapes or {}, source), name, source)
    made = model.clone()
    passes = _passes(made, inputs, changed, name)
    _put_types(made, passes, name, source)
    put_constants(made, passes)
    return made


def _passes(
    model: ir.Model, inputs: Mapping[str, Given], changed: bool, name: str
) -> list[Inference]:
    """Infer all nodes, for each sample of the symbolic extent; decided branches are taken."""
    import onnx_ir as ir

    source = model.meta.get("source", "model")
    samples = SAMPLES if name else SAMPLES[:1]
    passes = []
    for sample in samples:
        bound = {key: _bound(shape, {name: sample}) for key, shape in inputs.items()}
        passes.append(Inference(model, source, bound))
    declared = [{} if changed else _declared(model, {name: sample}) for sample in samples]
    for node in model.graph:  # it goes on with nodes that are put in after this one
        if _take_branch(model.graph, node, passes):
            continue
        proto = ir.serde.serialize_node(node)
        for index, one in enumerate(passes):
            try:
                one.step(node, proto, declared[index])
            except ExportError as error:
                if not index:
                    raise
                text = f"{error.message}; this is with {name} = {samples[index]}"
                raise ExportError(text, path=error.path) from None
    return passes


def _bound(shape: Given, names: Mapping[str, int]) -> tuple[int | None, ...]:
    """Return a shape with the values of its names."""
    return tuple(names.get(one) if isinstance(one, str) else one for one in shape)


def _take_branch(graph: ir.Graph, node: ir.Node, passes: list[Inference]) -> bool:
    """Replace an If whose condition is the same in every call; return True if it was one."""
    if node.op_type != "If" or node.domain:
        return False
    conditions = {
        bool(one.constants[node.inputs[0]].all()) if node.inputs[0] in one.constants else None
        for one in passes
    }
    condition = conditions.pop()
    if conditions or condition is None:
        return False
    take_branch(graph, node, condition)
    return True


def _dynamic_name(dynamic: Sequence[str], source: str) -> str:
    names = list_of(dynamic, "dynamic")
    if len(names) > 1:
        text = (
            f"dynamic, expected at most one name, found {listed(names)}; give shapes for the rest"
        )
        raise refusal(source, text)
    return names[0] if names else ""


def _checked(
    model: ir.Model, shapes: Mapping[str, Sequence[int | str]], source: str
) -> dict[str, Given]:
    """Return the given shapes, after the check of names and ranks."""
    inputs = {value.name: value for value in model.graph.inputs}
    for name, shape in shapes.items():
        if name not in inputs:
            text = f"input_shapes: the model has no input {shown(name)}"
            raise refusal(source, text + near_names(name, list(inputs)))
        where = f"input_shapes: {shown(name)}"
        is_list = isinstance(shape, Sequence) and not isinstance(shape, str | bytes)
        if not is_list or not all(_is_extent(extent) for extent in shape):
            text = f"{where}, expected extents of at least 0 or names, found {shown(shape)}"
            raise refusal(source, text)
        declared = inputs[name].shape
        if declared is not None and len(declared) != len(shape):
            text = f"{where}, expected {len(declared)} axes as in {shape_text(_extents(declared))}"
            raise refusal(source, f"{text}, found {shape_text(shape)}")
    return {name: tuple(shape) for name, shape in shapes.items()}


def _is_extent(extent: object) -> bool:
    return isinstance(extent, str) or (
        isinstance(extent, int) and not isinstance(extent, bool) and extent >= 0
    )


def _input_shapes(
    model: ir.Model, given: dict[str, Given], dynamic: str, source: str
) -> tuple[dict[str, Given], bool]:
    """Return the shape of each input, and whether one differs from the declared shape."""
    declared = {value.name: _extents(value.shape) for value in model.graph.inputs}
    names: dict[str, int | str] = {dynamic: dynamic} if dynamic else {}
    changed = False
    for key, shape in given.items():
        for old, new in zip(declared[key] or (), shape, strict=False):
            changed |= isinstance(old, int) and old != new
            if isinstance(old, str) and new is not None and names.setdefault(old, new) != new:
                text = f"input_shapes: {shown(key)}: extent {shown(old)}, expected {names[old]} as"
                raise refusal(source, f"{text} given before, found {new}")
    shapes: dict[str, Given | None] = {}
    for key, known in declared.items():
        shape_ = given.get(key, known)
        # A name that one input was given an extent for has it in the others too.
        shapes[key] = shape_ and tuple(
            names.get(one, one) if isinstance(one, str) else one for one in shape_
        )
    _check_open(shapes, dynamic, source)
    return {key: shape for key, shape in shapes.items() if shape is not None}, changed


def _check_open(shapes: Mapping[str, Given | None], dynamic: str, source: str) -> None:
    """Refuse inputs with an open extent, and a symbolic extent that is not the first."""
    used = [e for shape in shapes.values() for e in shape or () if isinstance(e, str)]
    inputs = ", ".join(f"{key} {shape_text(shape)}" for key, shape in shapes.items())
    is_open = any(
        shape is None or any(e is None or (isinstance(e, str) and e != dynamic) for e in shape)
        for shape in shapes.values()
    )
    if is_open:
        text = f"the inputs have open extents: {inputs}; give them by input_shapes"
        if (name := _only_first(shapes.values())) and not dynamic:
            text += f", or let each call decide it: dynamic=({name!r},)"
        raise refusal(source, text)
    if dynamic and dynamic not in used:
        text = f"dynamic: no input has an extent {shown(dynamic)}: {inputs}"
        key, first = next(iter(shapes.items()), ("", ()))
        if first:
            text += f"; name it: input_shapes={{{key!r}: {(dynamic, *first[1:])!r}}}"
        raise refusal(source, text)
    for key, shape in shapes.items():
        if dynamic in (shape or ())[1:]:
            text = (
                f"input {shown(key)}: {shape_text(shape)}, expected {shown(dynamic)} at the first"
            )
            raise refusal(source, f"{text} axis alone; export it with input_shapes instead")


def _only_first(shapes: Iterable[Given | None]) -> str:
    """Return the only open extent, if it has a name and is the first one wherever it is."""
    first: set[int | str | None] = set()
    for shape in shapes:
        if shape is None or not all(isinstance(extent, int) for extent in shape[1:]):
            return ""
        first.update(extent for extent in shape[:1] if not isinstance(extent, int))
    name = first.pop() if len(first) == 1 else None
    return name if isinstance(name, str) else ""


def _extents(shape: ir.Shape | None) -> Given | None:
    if shape is None:
        return None
    return tuple(extent if isinstance(extent, int) else extent.value for extent in shape)


def _declared(model: ir.Model, names: Mapping[str, int]) -> dict[ir.Value, Type]:
    """Return the types that the model declares for outputs of nodes."""
    found = {}
    for node in model.graph:
        for value in node.outputs:
            if value.dtype is not None:
                extents = _extents(value.shape)
                shape = None if extents is None else _bound(extents, names)
                found[value] = Type(int(value.dtype), shape)
    return found


def _put_types(model: ir.Model, passes: list[Inference], name: str, source: str) -> None:
    """Put the inferred types into the values of a model."""
    import onnx_ir as ir

    for value, (dtype, _) in passes[0].types.items():
        shapes = [one.types[value].shape for one in passes]
        extents: list[int | ir.SymbolicDim] = []
        for found in zip(*(s or () for s in shapes), strict=False):
            if found.count(found[0]) == len(found):
                extents.append(found[0] or 0)
            elif (factor := _factor(found)) is not None:
                extents.append(ir.SymbolicDim(name if factor == 1 else f"{factor}*{name}"))
            else:
                raise _symbolic_refusal(value, shapes, name, source)
        if len({len(s or ()) for s in shapes}) > 1:
            raise _symbolic_refusal(value, shapes, name, source)
        value.dtype, value.shape = ir.DataType(dtype), ir.Shape(extents)
    for node, proto in passes[0].inner.items():
        _put_inner_types(node, proto)


def _factor(extents: tuple[Any, ...]) -> int | None:
    """Return how many times the symbolic extent an extent is, or None."""
    factor = extents[0] // SAMPLES[0] if isinstance(extents[0], int) else 0
    return factor if factor and extents == tuple(factor * each for each in SAMPLES) else None


def _symbolic_refusal(value: ir.Value, shapes: list[Any], name: str, source: str) -> ExportError:
    producer = value.producer()
    where = name_of_node(producer) if producer is not None else f"input {shown(value.name)}"
    found = " and ".join(
        f"{shape_text(shape)} with {name} = {sample}"
        for shape, sample in zip(shapes, SAMPLES, strict=True)
    )
    text = f"{where}: output {shown(value.name)}, expected {shown(name)} as its first extent alone,"
    return refusal(source, f"{text} found {found}; export several input_shapes instead")


def _put_inner_types(node: ir.Node, proto: Any) -> None:
    """Put the types that were inferred in subgraphs into their values."""
    import onnx_ir as ir

    graphs = [
        graph
        for attribute in proto.attribute
        for graph in ([attribute.g] if attribute.HasField("g") else attribute.graphs)
    ]
    for graph, found in zip(graphs_of(node), graphs, strict=True):
        types = {one.name: one.type for one in [*found.value_info, *found.input, *found.output]}
        inner = {one.name: one for one in graph.inputs}
        inner |= {value.name: value for one in graph for value in one.outputs}
        for key, value in inner.items():
            type_ = types.get(key)
            if type_ is not None and type_.HasField("tensor_type"):
                value.type = ir.from_proto(type_).type
                value.shape = ir.from_proto(type_).shape
        for one, made in zip(graph, found.node, strict=True):
            _put_inner_types(one, made)
