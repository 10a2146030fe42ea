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
from runtime.error import near_names, shown

from ..extent import Extent, identifier, parsed, product, symbols_of, value_at, written
from ..quiet import quiet
from .constants import OpenElements, put_constants
from .equations import MOST, put_conditions
from .exact import register_exact
from .infer import Inference
from .loops import take_branch
from .types import Shape, Type, graphs_of, known_extents
from .words import name_of_node, refusal, shape_text

if TYPE_CHECKING:
    import onnx_ir as ir

# Values of the open extents, of the first and second symbol, and so on: two samples. A model may
# refuse large ones, for a table is short, or small ones, for a window is large. They are so far
# from each other that extents after strides of 32 differ.
_SAMPLES = (
    ((2, 3, 5, 7, 11, 13), (61, 113, 173, 229, 283, 347)),
    ((2, 3, 5, 7, 11, 13), (3, 5, 7, 11, 13, 17)),
    ((64, 128, 192, 256, 320, 384), (192, 320, 448, 576, 704, 832)),
)
# The third one: the first of these that the model takes.
_THIRD = (
    (128, 288, 544, 832, 1088, 1376),
    (53, 41, 59, 37, 47, 43),
    (8, 14, 10, 16, 6, 9),
    (5, 7, 3, 2, 13, 11),
)
_MOST_SYMBOLS = len(_SAMPLES[0][0])
_MOST_FACTORS = 3
Given = tuple[int | str | None, ...]
Sample = dict[str, int]


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
    inputs, changed = _input_shapes(model, _checked(model, shapes or {}, source), source)
    made, passes = _inferred(model, inputs, changed, source)
    put_conditions(made, model.meta.get(MOST, {}))
    put_constants(made, passes.all, passes.open)
    return made


class _Passes:
    """The inference of a model for each sample of its open extents.

    Parameters
    ----------
    model : ir.Model
        The copy that gets the types; branches that are decided are taken in it.
    inputs : mapping of str to tuple
        The shape of each input.
    changed : bool
        Whether shapes of inputs are others than the declared ones.
    samples : list
        Values of the open extents.
    """

    def __init__(
        self,
        model: ir.Model,
        inputs: Mapping[str, tuple[Extent, ...]],
        changed: bool,
        samples: list[Sample],
    ) -> None:
        self.inputs, self.samples, self._changed = inputs, samples, changed
        self._model = model
        self.all = [self._begun(sample) for sample in samples]
        self.open = OpenElements()
        self._run()

    @property
    def shapes(self) -> dict[ir.Value, list[Shape]]:
        """The shapes of each value, one for each sample."""
        return {key: [one.types[key].shape or () for one in self.all] for key in self.all[0].types}

    def add(self) -> None:
        """Infer one sample more, if the model takes one."""
        import onnx_ir as ir

        for values in _THIRD:
            sample = dict(zip(self.samples[0], values, strict=False))
            one, declared = self._begun(sample), self._declared(sample)
            try:
                for node in self._model.graph:
                    one.step(node, ir.serde.serialize_node(node), declared)
            except ExportError:
                continue
            self.all.append(one)
            self.samples.append(sample)
            return

    def _begun(self, sample: Sample) -> Inference:
        source = self._model.meta.get("source", "model")
        bound = {key: _bound(shape, sample) for key, shape in self.inputs.items()}
        return Inference(self._model, source, bound)

    def _declared(self, sample: Sample) -> dict[ir.Value, Type]:
        return {} if self._changed else _declared(self._model, sample)

    def _run(self) -> None:
        """Infer all nodes, for each sample; decided branches are taken."""
        import onnx_ir as ir

        declared = [self._declared(sample) for sample in self.samples]
        for node in self._model.graph:  # it goes on with nodes that are put in after this one
            if self._take_branch(node):
                continue
            proto = ir.serde.serialize_node(node)
            for one, sample, known in zip(self.all, self.samples, declared, strict=True):
                try:
                    one.step(node, proto, known)
                except ExportError as error:
                    if len(self.all) == 1:
                        raise
                    values = ", ".join(f"{name} = {value}" for name, value in sample.items())
                    text = f"{error.message}; this is with {values}"
                    raise ExportError(text, path=error.path) from None
            self.open.step(node, proto, [one.constants for one in self.all])

    def _take_branch(self, node: ir.Node) -> bool:
        """Replace an If whose condition is the same in every call; return True if it was one."""
        if node.op_type != "If" or node.domain or node.inputs[0] in self.open.elements:
            return False
        conditions = {
            bool(one.constants[node.inputs[0]].all()) if node.inputs[0] in one.constants else None
            for one in self.all
        }
        condition = conditions.pop()
        if conditions or condition is None:
            return False
        take_branch(self._model.graph, node, condition)
        return True


def _inferred(
    model: ir.Model, inputs: Mapping[str, tuple[Extent, ...]], changed: bool, source: str
) -> tuple[ir.Model, _Passes]:
    """Return a copy of a model with types, by the first samples that it takes.

    Raises the error of the first ones if it takes none.
    """
    refused: ExportError | None = None
    for samples in _samples(inputs, source):
        made = model.clone()
        try:
            passes = _Passes(made, inputs, changed, samples)
            _put_types(made, passes, source)
        except ExportError as error:
            refused = refused or error
            continue
        return made, passes
    assert refused is not None
    raise refused


def _samples(inputs: Mapping[str, tuple[Extent, ...]], source: str) -> list[list[Sample]]:
    """Return values of the open extents: pairs of samples, in none of which a value is twice."""
    names = symbols_of(extent for shape in inputs.values() for extent in shape)
    if len(names) > _MOST_SYMBOLS:
        text = f"the inputs have {len(names)} open extents, expected at most {_MOST_SYMBOLS}"
        raise refusal(source, f"{text}: {', '.join(names)}; give some of them by input_shapes")
    if not names:
        return [[{}]]
    return [[dict(zip(names, values, strict=False)) for values in pair] for pair in _SAMPLES]


def _bound(shape: Given, sample: Sample) -> tuple[int | None, ...]:
    """Return a shape with the values of its names; None for an extent without."""
    return tuple(None if one is None else _value_of(one, sample) for one in shape)


def _value_of(extent: Extent, sample: Sample) -> int | None:
    try:
        return value_at(extent, sample)
    except ValueError:  # a name, not an expression
        return None


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
            wanted = known_extents(declared)
            text = f"{where}, expected {len(declared)} axes as in {shape_text(wanted)}"
            raise refusal(source, f"{text}, found {shape_text(shape)}")
    return {name: tuple(shape) for name, shape in shapes.items()}


def _is_extent(extent: object) -> bool:
    return isinstance(extent, str) or (
        isinstance(extent, int) and not isinstance(extent, bool) and extent >= 0
    )


def _input_shapes(
    model: ir.Model, given: dict[str, Given], source: str
) -> tuple[dict[str, tuple[Extent, ...]], bool]:
    """Return the shape of each input, and whether one differs from the declared shape."""
    declared = {value.name: known_extents(value.shape) for value in model.graph.inputs}
    names: dict[str, int | str] = {}
    changed = False
    for key, shape in given.items():
        for old, new in zip(declared[key] or (), shape, strict=False):
            changed |= isinstance(old, int) and old != new
            if isinstance(old, str) and new is not None and names.setdefault(old, new) != new:
                text = f"input_shapes: {shown(key)}: extent {shown(old)}, expected {names[old]} as"
                raise refusal(source, f"{text} given before, found {new}")
    shapes: dict[str, Given] = {}
    for key, known in declared.items():
        shape_ = given.get(key, known)
        if shape_ is None:
            text = f"input {shown(key)} has no shape, expected one; give it by input_shapes"
            raise refusal(source, text)
        # A name that one input was given an extent for has it in the others too.
        shapes[key] = tuple(names.get(one, one) if isinstance(one, str) else one for one in shape_)
    return _named(shapes), changed


def _named(shapes: Mapping[str, Given]) -> dict[str, tuple[Extent, ...]]:
    """Return shapes whose open extents are expressions of identifiers."""
    texts = [e for shape in shapes.values() for e in shape if isinstance(e, str)]
    plain = {text for text in texts if text.isascii() and text.isidentifier()}
    made: dict[str, str] = {text: identifier(text, ()) for text in sorted(plain)}
    for text in texts:
        if text not in made:
            made[text] = _expression(text, made) or identifier(text, list(made.values()))
    found: dict[str, tuple[Extent, ...]] = {}
    for key, shape in shapes.items():
        extents: list[Extent] = []
        for axis, extent in enumerate(shape):
            if extent is None:
                extents.append(identifier(f"{key}_{axis}", list(made.values())))
            else:
                extents.append(made[extent] if isinstance(extent, str) else extent)
        found[key] = tuple(extents)
    return found


def _expression(text: str, names: Mapping[str, str]) -> str | None:
    """Return a text of a model that is an expression of other names; None for a name."""
    try:
        expression = parsed(text)
    except ValueError:
        return None
    is_known = all(symbol.name in names for symbol in expression.free_symbols)
    return str(expression) if is_known else None


def _declared(model: ir.Model, sample: Sample) -> dict[ir.Value, Type]:
    """Return the types that the model declares for outputs of nodes."""
    found = {}
    for node in model.graph:
        for value in node.outputs:
            if value.dtype is not None:
                extents = known_extents(value.shape)
                shape = None if extents is None else _bound(extents, sample)
                found[value] = Type(int(value.dtype), shape)
    return found


def _put_types(model: ir.Model, passes: _Passes, source: str) -> None:
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
    value: ir.Value, found: Sequence[Shape], passes: _Passes, guesses: bool
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
        return written(parsed(calculated)) if isinstance(calculated, str) else calculated
    if nearby is None:
        return None
    if len({*sizes}) == 1:
        return sizes[0] or 0
    texts = (one for one in nearby if isinstance(one, str))
    fitting = (one for one in (*texts, *_products(sizes, samples)) if _fits(one, sizes, samples))
    found = next(fitting, None)
    return None if found is None else product([found])


def _fits(extent: Extent, sizes: tuple[int | None, ...], samples: Sequence[Sample]) -> bool:
    return tuple(_value_of(extent, sample) for sample in samples) == sizes


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
