"""Shapes for all values of a model: ints, and expressions of the extents that are open.

onnx_shape_inference calculates with the open extents. Its expressions are compared with the shapes
that are inferred for two samples of the open extents, node by node. Where it knows none, a third
sample is inferred, and an extent of the inputs of the node, or a multiple of a product of open
extents, that fits all three is one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations_with_replacement
from typing import TYPE_CHECKING, Any

from packer import ExportError
from runtime.error import shown

from ..extent import Extent, flattened, parsed, product, value_at, written
from ..quiet import quiet
from .constants import put_constants
from .equations import MOST, put_conditions
from .exact import register_exact
from .input_shapes import input_shapes
from .passes import Passes, Sample, samples_of, value_of
from .types import Shape, graphs_of, known_extents
from .words import name_of_node, refusal, shape_text

if TYPE_CHECKING:
    import onnx_ir as ir

_MOST_FACTORS = 3


def with_shapes(
    model: ir.Model, shapes: Mapping[str, Sequence[int | str]] | None = None
) -> ir.Model:
    """Return a copy of a model in which every value has a data type and a shape.

    Values that follow from the shapes become initialisers, and nodes that nothing uses go.

    Parameters
    ----------
    model : onnx_ir.Model
        Of `read_model`; it is not changed. The copy shares its weights.
    shapes : mapping of str to sequence of int or str, optional
        The shape of each input to change. A str names an extent that each call decides.

    Returns
    -------
    onnx_ir.Model
        Its extents are ints, or ``ir.SymbolicDim`` of an expression (`extent`).

    Raises
    ------
    ExportError
        If the shapes do not fit a node, with its name; if a shape depends on data.
    """
    source = model.meta.get("source", "model")
    inputs, changed = input_shapes(model, shapes or {}, source)
    made, passes = _inferred(model, inputs, changed, source)
    put_conditions(made, model.meta.get(MOST, {}))
    put_constants(made, passes.all, passes.open)
    return made


def _inferred(
    model: ir.Model, inputs: Mapping[str, tuple[Extent, ...]], changed: bool, source: str
) -> tuple[ir.Model, Passes]:
    """Return a copy of a model with types, by the first samples that it takes.

    Raises the error of the first ones if it takes none.
    """
    refused: ExportError | None = None
    for samples in samples_of(inputs, source):
        made = model.clone()
        try:
            passes = Passes(made, inputs, changed, samples)
            _put_types(made, passes, source)
        except ExportError as error:
            refused = refused or error
            continue
        return made, passes
    assert refused is not None
    raise refused


def _put_types(model: ir.Model, passes: Passes, source: str) -> None:
    """Put the inferred types into the values of a model."""
    import onnx_ir as ir

    for value, (dtype, _) in passes.all[0].types.items():
        value.dtype = ir.DataType(dtype)
    known: dict[ir.Value, ir.Shape] = {
        value: ir.Shape(passes.inputs[str(value.name)]) for value in model.graph.inputs
    }
    found, guesses = passes.shapes, False
    while True:
        if len(passes.all) > 1:
            _calculate(model, known)
        before = len(known)
        for value, sizes in found.items():
            shape = known.get(value) or _shape(value, sizes, passes, guesses)
            if shape is not None:
                value.shape = known[value] = shape
        if len(known) == len(found):
            break
        if not guesses and len(passes.all) > 1:
            passes.add()
            found, guesses = passes.shapes, True
        elif len(known) == before:
            value = next(value for value in found if value not in known)
            raise _symbolic_refusal(value, found[value], passes.samples, source)
    for node, proto in passes.all[0].inner.items():
        _put_inner_types(node, proto)


def _calculate(model: ir.Model, known: Mapping[ir.Value, ir.Shape]) -> None:
    """Let onnx_shape_inference calculate with the open extents, from what is known already."""
    import onnx_shape_inference

    register_exact()
    values = (value for node in model.graph for value in node.outputs)
    for value in (*model.graph.inputs, *values):
        value.shape = known.get(value)
    with quiet("onnx_shape_inference"):
        onnx_shape_inference.infer_symbolic_shapes(model)


def _shape(
    value: ir.Value, found: Sequence[Shape], passes: Passes, guesses: bool
) -> ir.Shape | None:
    """Return the shape that has some extents for the samples; None if there is no such one.

    Only with `guesses` it may have extents that were not calculated, if a node reads open ones.
    """
    import onnx_ir as ir

    if len({len(shape) for shape in found}) > 1:
        return None
    calculated = known_extents(value.shape) or ()
    producer = value.producer()
    read = producer.inputs if producer is not None else ()
    nearby = [e for one in read if one is not None for e in known_extents(one.shape) or (None,)]
    is_fixed = all(isinstance(extent, int) for extent in nearby) and not any(
        one in passes.open.elements for one in read
    )
    extents: list[Extent] = []
    for axis, sizes in enumerate(zip(*found, strict=False)):
        likely = calculated[axis] if axis < len(calculated) else None
        may_guess = guesses or is_fixed or len(passes.samples) == 1
        extent = _extent(likely, nearby if may_guess else None, sizes, passes.samples)
        if extent is None:
            return None
        extents.append(extent)
    return ir.Shape(extents)


def _extent(
    calculated: Extent | None,
    nearby: Sequence[Extent | None] | None,
    sizes: tuple[int | None, ...],
    samples: Sequence[Sample],
) -> Extent | None:
    """Return the extent that has some sizes for the samples: of `nearby` ones, or a product."""
    if calculated is not None and _fits(calculated, sizes, samples):
        return written(flattened(parsed(calculated))) if isinstance(calculated, str) else calculated
    if nearby is None:
        return None
    if len({*sizes}) == 1:
        return sizes[0] or 0
    texts = (one for one in nearby if isinstance(one, str))
    fitting = (one for one in (*texts, *_products(sizes, samples)) if _fits(one, sizes, samples))
    found = next(fitting, None)
    return None if found is None else product([found])


def _fits(extent: Extent, sizes: tuple[int | None, ...], samples: Sequence[Sample]) -> bool:
    return tuple(value_of(extent, sample) for sample in samples) == sizes


def _products(sizes: tuple[int | None, ...], samples: Sequence[Sample]) -> Iterator[Extent]:
    """Yield multiples of products of open extents, simple ones first."""
    names = sorted(samples[0])
    for count in range(1, _MOST_FACTORS + 1):
        for factors in combinations_with_replacement(names, count):
            whole = product(factors)
            value = value_at(whole, samples[0])
            if value and sizes[0] and sizes[0] % value == 0:
                yield product([sizes[0] // value, whole])


def _symbolic_refusal(
    value: ir.Value, shapes: Sequence[Shape], samples: Sequence[Sample], source: str
) -> ExportError:
    producer = value.producer()
    where = name_of_node(producer) if producer is not None else f"input {shown(value.name)}"
    found = " and ".join(
        f"{shape_text(shape)} with {', '.join(f'{n} = {v}' for n, v in sample.items())}"
        for shape, sample in zip(shapes, samples, strict=True)
    )
    text = f"{where}: output {shown(value.name)}, expected a shape that follows from the open"
    return refusal(source, f"{text} extents, found {found}; give them by input_shapes instead")


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
