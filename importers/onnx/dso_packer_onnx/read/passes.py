"""The inference of a model for samples of its open extents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from packer import ExportError

from ..extent import Extent, symbols_of, value_at
from .births import Births, MeetingError
from .branches import take_branch
from .constants import OpenElements
from .defined import needs_definition, put_definition
from .flow import KINDS, run_bodies
from .flow_node import KEY, put_types
from .infer import Inference
from .limited import LimitedAxes
from .objects import object_of
from .sequences import run, runs_here
from .types import Shape, Type, known_extents, values_read
from .words import refusal

if TYPE_CHECKING:
    import numpy
    import onnx_ir as ir

    from .input_shapes import Given

Sample = dict[str, int]
# Values of the open extents, of the first and second symbol, and so on: two samples. A model may
# refuse large ones, for a table is short, or small ones, for a window is large. They are so far
# from each other that extents after strides of 32 differ.
_SAMPLES = (
    ((2, 3, 5, 7, 11, 13), (61, 113, 173, 229, 283, 347)),
    ((2, 3, 5, 7, 11, 13), (3, 5, 7, 11, 13, 17)),
    ((64, 128, 192, 256, 320, 384), (192, 320, 448, 576, 704, 832)),
    ((512, 1024, 1536, 2048, 2560, 3072), (768, 1280, 1792, 2304, 2816, 3328)),
)
# The third one: the first of these that the model takes.
_THIRD = (
    (53, 41, 59, 37, 47, 43),
    (8, 14, 10, 16, 6, 9),
    (5, 7, 3, 2, 13, 11),
    (128, 288, 544, 832, 1088, 1376),
)
_MOST_SYMBOLS = len(_SAMPLES[0][0])


class Seed(NamedTuple):
    """The elements of a small input in each sample, and which of them can differ."""

    arrays: Sequence[numpy.ndarray[Any, Any]]
    is_open: numpy.ndarray[Any, Any]


class Passes:
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
        Values of the open extents; new symbols get values in them too.
    births : Births
        The symbols whose values the data decides.
    seeds : mapping of str to Seed, optional
        The elements of small inputs that the samples decide.
    """

    def __init__(
        self,
        model: ir.Model,
        inputs: Mapping[str, tuple[Extent, ...]],
        changed: bool,
        samples: list[Sample],
        births: Births,
        seeds: Mapping[str, Seed] | None = None,
    ) -> None:
        self.inputs, self.samples, self._changed = inputs, samples, changed
        self.births = births
        self._model = model
        self.all = [self._begun(sample, number) for number, sample in enumerate(samples)]
        self.open = OpenElements()
        self.limited = LimitedAxes(self.all)
        for value in model.graph.inputs:
            shape = enumerate(inputs[str(value.name)]) if len(samples) > 1 else ()
            self.limited.put(value, [axis for axis, one in shape if isinstance(one, str)])
        # The tensors of sequences, if they are the same ones in every call.
        self.items: dict[ir.Value, list[ir.Value]] = {}
        for value in model.graph.inputs:
            type_ = object_of(value)
            if type_ is not None and type_.is_empty:
                self.items[value] = []
        self._put_seeds(seeds or {})
        self._run()

    @property
    def names(self) -> tuple[str, ...]:
        """The open extents of the inputs."""
        return symbols_of(extent for shape in self.inputs.values() for extent in shape)

    @property
    def source(self) -> str:
        """The name of the model in messages."""
        return str(self._model.meta.get("source", "model"))

    @property
    def shapes(self) -> dict[ir.Value, list[Shape]]:
        """The shapes of each value, one for each sample."""
        return {key: [one.types[key].shape or () for one in self.all] for key in self.all[0].types}

    def add(self) -> None:
        """Infer one sample more, if the model takes one."""
        import onnx_ir as ir

        for values in _THIRD:
            sample = dict(zip(self.names, values, strict=False))
            one, declared = self._begun(sample, len(self.all)), self._declared(sample)
            try:
                for node in self._model.graph:
                    if KEY in node.meta:
                        put_types(node, one, self.births, sample, len(self.all))
                    else:
                        one.step(node, ir.serde.serialize_node(node), declared)
            except ExportError:
                continue
            self.births.fill(one, sample)
            self.all.append(one)
            self.samples.append(sample)
            return

    def step(self, node: ir.Node) -> None:
        """Infer a node that was put in before the current one."""
        import onnx_ir as ir

        proto = ir.serde.serialize_node(node)
        for one in self.all:
            one.step(node, proto, {})
        self.open.step(node, proto, [one.constants for one in self.all])

    def constant(self, name: str, numbers: Sequence[int]) -> ir.Value:
        """Return a new weight of the model with int64 numbers."""
        import numpy
        import onnx_ir as ir

        array = numpy.array(numbers, numpy.int64)
        value = ir.Value(
            name=name,
            type=ir.TensorType(ir.DataType.INT64),
            shape=ir.Shape(array.shape),
            const_value=ir.Tensor(array, name=name),
        )
        self._model.graph.register_initializer(value)
        self.put_constant(value)
        return value

    def put_constant(self, value: ir.Value) -> None:
        """Note the type and the numbers of a new weight."""
        tensor = value.const_value
        assert tensor is not None
        for one in self.all:
            one.types[value] = Type(int(tensor.dtype), tuple(tensor.shape.numpy()))
            one.constants[value] = tensor.numpy()

    def forget(self, values: Iterable[ir.Value]) -> None:
        """Ignore what the model declares for values and for all that nodes compute of them."""
        dependent = {*values}
        for node in self._model.graph:
            if not dependent.isdisjoint(values_read(node)):
                dependent.update(node.outputs)
        for known in self._known:
            for value in dependent & known.keys():
                del known[value]

    def put(self, node: ir.Node) -> None:
        """Put the types of the results of a node of `flow`."""
        for number, (one, sample) in enumerate(zip(self.all, self.samples, strict=True)):
            put_types(node, one, self.births, sample, number)
        for value, (_, extents) in zip(node.outputs, node.meta[KEY].shapes, strict=True):
            self.limited.put(value, [i for i, one in enumerate(extents) if isinstance(one, str)])

    def _begun(self, sample: Sample, number: int) -> Inference:
        bound = {key: _bound(shape, sample) for key, shape in self.inputs.items()}

        def complete(node: ir.Node, index: int, one: Inference) -> Shape | None:
            return self.births.complete(node, index, one, sample, number)

        return Inference(self._model, self.source, bound, len(self.samples) > 1, complete)

    def _declared(self, sample: Sample) -> dict[ir.Value, Type]:
        return {} if self._changed else _declared(self._model, sample)

    def _put_seeds(self, seeds: Mapping[str, Seed]) -> None:
        for value in self._model.graph.inputs:
            seed = seeds.get(str(value.name))
            if seed is not None:
                self.open.elements[value] = seed.is_open
                for one, array in zip(self.all, seed.arrays, strict=True):
                    one.constants[value] = array

    def _run(self) -> None:
        """Infer all nodes, for each sample; decided branches are taken."""
        import onnx_ir as ir

        self._known = [self._declared(sample) for sample in self.samples]
        for node in self._model.graph:  # it goes on with nodes that are put in after this one
            if KEY in node.meta or self._take_branch(node):
                continue
            if node.op_type in KINDS and not node.domain:
                run_bodies(node, self)
                continue
            if runs_here(node):
                run(node, self)
                continue
            if needs_definition(node, self):
                put_definition(node, self)
                continue
            proto = ir.serde.serialize_node(node)
            for one, sample, known in zip(self.all, self.samples, self._known, strict=True):
                try:
                    one.step(node, proto, known)
                except ExportError as error:
                    if len(self.all) == 1:
                        raise
                    meeting = self.births.meeting(node, one, sample)
                    if meeting is not None:
                        raise MeetingError(meeting) from error
                    values = ", ".join(f"{name} = {value}" for name, value in sample.items())
                    text = f"{error.message}; this is with {values}"
                    raise ExportError(text, path=error.path) from None
            self.open.step(node, proto, [one.constants for one in self.all])
            if len(self.all) > 1:
                self.limited.step(node, self.open.elements)

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


def samples_of(
    inputs: Mapping[str, tuple[Extent, ...]], source: str, *, has_births: bool
) -> list[list[Sample]]:
    """Return values of the open extents: pairs of samples, in none of which a value is twice."""
    names = symbols_of(extent for shape in inputs.values() for extent in shape)
    if len(names) > _MOST_SYMBOLS:
        text = f"the inputs have {len(names)} open extents, expected at most {_MOST_SYMBOLS}"
        raise refusal(source, f"{text}: {', '.join(names)}; give some of them by input_shapes")
    if not names and not has_births:
        return [[{}]]
    return [[dict(zip(names, values, strict=False)) for values in pair] for pair in _SAMPLES]


def _bound(shape: Given, sample: Sample) -> tuple[int | None, ...]:
    """Return a shape with the values of its names; None for an extent without."""
    return tuple(None if one is None else value_of(one, sample) for one in shape)


def value_of(extent: Extent, sample: Sample) -> int | None:
    """Return an extent for a sample; None for a name that it does not have."""
    try:
        return value_at(extent, sample)
    except ValueError:  # a name, not an expression
        return None


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
