"""Shapes for all values of a model: ints, and expressions of the extents that are open.

onnx_shape_inference calculates with the open extents. Its expressions are compared with the shapes
that are inferred for two samples of the open extents, node by node. Where it knows none, a third
sample is inferred, and an extent of the inputs of the node, or a multiple of a product of open
extents, that fits all three is one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from packer import ExportError
from runtime.error import shown

from ..extent import Extent
from ..quiet import quiet
from .births import Births, ChanceError, Meeting, MeetingError, NeedsSamplesError, Place
from .constants import put_constants
from .equations import RANGES, put_conditions
from .exact import register_exact
from .extents import put_extents
from .fitting import fitting_extent
from .flow_node import calculated as calculated_by
from .input_shapes import input_shapes
from .passes import Passes, Sample, Seed, samples_of
from .types import Shape, known_extents
from .words import name_of_node, refusal, shape_text

if TYPE_CHECKING:
    import onnx_ir as ir


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
    made.meta["source"] = source
    put_extents(made, passes.births)
    put_conditions(made, model.meta.get(RANGES, {}), passes.births.equal)
    put_constants(made, passes.all, passes.open)
    return made


def shape_body(
    model: ir.Model,
    inputs: Mapping[str, tuple[Extent, ...]],
    samples: list[Sample],
    outer: Passes,
    seeds: Mapping[str, Seed],
    shared: Collection[str],
    apart: frozenset[Place] = frozenset(),
) -> tuple[ir.Model, Passes]:
    """Give the model of a body shapes, by the samples of the model around it.

    `seeds` are the elements of small inputs. Its outputs without the numbers of new symbols are in
    its metadata. `shared` are the symbols of the model around it that rounds change, `apart` the
    axes that have other extents than the samples say.
    """
    around, whole = outer.births, model

    def begun(equal: Sequence[Meeting]) -> Births:
        extents = [extent for shape in inputs.values() for extent in shape]
        can_differ = len(samples) > 1
        return Births(extents, around.number, can_differ, equal, shared, around.count, apart)

    model, passes = _with_births(whole, inputs, True, samples, begun, seeds)
    try:
        _put_types(model, passes, outer.source)
    except ChanceError as error:
        return shape_body(whole, inputs, samples, outer, seeds, shared, error.places)
    model.meta["results"] = [*model.graph.outputs]
    put_extents(model, passes.births)
    put_conditions(model, {}, passes.births.equal)
    put_constants(model, passes.all, passes.open)
    return model, passes


def _inferred(
    model: ir.Model, inputs: Mapping[str, tuple[Extent, ...]], changed: bool, source: str
) -> tuple[ir.Model, Passes]:
    """Return a copy of a model with types, by the first samples that it takes.

    Where an extent of the first ones that it takes is not known, none is guessed by others, for
    which it may look like a simpler one. Raises that error, or the first one if it takes none.
    """
    apart: frozenset[Place] = frozenset()
    has_births = False
    while True:
        try:
            return _first(model, inputs, changed, source, apart, has_births=has_births)
        except NeedsSamplesError:
            has_births = True
        except ChanceError as error:
            apart = error.places


def _first(
    model: ir.Model,
    inputs: Mapping[str, tuple[Extent, ...]],
    changed: bool,
    source: str,
    apart: frozenset[Place],
    *,
    has_births: bool,
) -> tuple[ir.Model, Passes]:
    refused: ExportError | None = None
    may_guess = True
    extents = [extent for shape in inputs.values() for extent in shape]
    for number, samples in enumerate(samples_of(inputs, source, has_births=has_births)):
        try:
            begun = partial(Births, extents, number, len(samples) > 1, apart=apart)
            made, passes = _with_births(model, inputs, changed, samples, begun)
        except ExportError as error:
            refused = refused or error
            continue
        try:
            _put_types(made, passes, source, may_guess=may_guess)
        except ExportError as error:
            if may_guess:
                refused, may_guess = error, False
            continue
        return made, passes
    assert refused is not None
    raise refused


def _with_births(
    model: ir.Model,
    inputs: Mapping[str, tuple[Extent, ...]],
    changed: bool,
    samples: list[Sample],
    begun: Callable[[Sequence[Meeting]], Births],
    seeds: Mapping[str, Seed] | None = None,
) -> tuple[ir.Model, Passes]:
    """Infer a copy of a model; symbols that must be equal get equal values.

    `begun` makes the symbols, for the ones that are equal to others.
    """
    equal: list[Meeting] = []
    while True:
        made, given = model.clone(), [dict(sample) for sample in samples]
        births = begun(equal)
        try:
            return made, Passes(made, inputs, changed, given, births, seeds)
        except MeetingError as error:
            if error.meeting.symbol in births.shared:
                raise  # the model around it chooses the values
            if error.meeting.symbol in (one.symbol for one in equal):
                raise refusal(str(model.meta.get("source", "model")), _unequal(error)) from error
            equal.append(error.meeting)


def _unequal(error: MeetingError) -> str:
    symbol, other, where = error.meeting
    return f"{where}: extents {symbol} and {other}, expected shapes that fit"


def _put_types(model: ir.Model, passes: Passes, source: str, *, may_guess: bool = True) -> None:
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
            _calculate(model, known, has_births=bool(passes.births.of))
        before = len(known)
        for value, sizes in found.items():
            shape = known.get(value) or _shape(value, sizes, passes, guesses)
            if shape is not None:
                value.shape = known[value] = shape
        if len(known) == len(found):
            break
        if passes.births.of and len(known) > before:
            continue  # what follows from new symbols is calculated before anything is guessed
        if passes.births.of and _force(passes, known):
            continue
        if may_guess and not guesses and len(passes.all) > 1:
            passes.add()
            found, guesses = passes.shapes, True
        elif len(known) == before and not _force(passes, known):
            value = next(value for value in found if value not in known)
            raise _symbolic_refusal(value, found[value], passes.samples, source)
    passes.births.check_chance(known)


def _force(passes: Passes, known: Mapping[ir.Value, ir.Shape]) -> bool:
    """Let nodes find the extents of their results whose inputs have shapes; True if some can."""
    if len(passes.all) == 1:
        return False
    nodes = {value.producer(): None for value in passes.shapes if value not in known}
    ready = [
        node
        for node in nodes
        if node is not None and all(one is None or one in known for one in node.inputs)
    ]
    forced = [node for node in ready if passes.births.force(node, passes)]
    return bool(forced)


def _calculate(model: ir.Model, known: Mapping[ir.Value, ir.Shape], *, has_births: bool) -> None:
    """Let onnx_shape_inference calculate with the open extents, from what is known already.

    It relates its own symbols to known ones, which takes minutes for hundreds of new symbols.
    """
    import onnx_shape_inference

    register_exact()
    values = (value for node in model.graph for value in node.outputs)
    for value in (*model.graph.inputs, *values):
        value.shape = known.get(value)
    with quiet("onnx_shape_inference"):
        onnx_shape_inference.infer_symbolic_shapes(model, adopt_declared_symbols=not has_births)


def _shape(
    value: ir.Value, found: Sequence[Shape], passes: Passes, guesses: bool
) -> ir.Shape | None:
    """Return the shape that has some extents for the samples; None if there is no such one.

    Only with `guesses` it may have extents that were not calculated, if a node reads open ones.
    """
    import onnx_ir as ir

    if len({len(shape) for shape in found}) > 1:
        return None
    found_by = calculated_by(value)
    calculated = found_by if found_by is not None else known_extents(value.shape) or ()
    producer = value.producer()
    read = producer.inputs if producer is not None else ()
    nearby = [e for one in read if one is not None for e in known_extents(one.shape) or (None,)]
    is_fixed = all(isinstance(extent, int) for extent in nearby) and not any(
        one in passes.open.elements for one in read
    )
    extents: list[Extent] = []
    born = passes.births.of.get(value, ())
    for axis, sizes in enumerate(zip(*found, strict=False)):
        symbol = born[axis] if axis < len(born) else None
        if symbol:
            extents.append(symbol)
            continue
        likely = calculated[axis] if axis < len(calculated) else None
        may_guess = guesses or is_fixed or len(passes.samples) == 1
        around = nearby if may_guess else None
        extent = fitting_extent(likely, around, sizes, passes.samples, passes.names)
        if extent is None:
            return None
        extents.append(extent)
    return ir.Shape(extents)


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
