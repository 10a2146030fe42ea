"""Extents that the data of a call decides: the results that have them, and their symbols.

Such an extent is a new symbol, whose value is known when the data is. Inference continues with a
number for it in each sample, as for the open extents of the inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..extent import Extent, identifier, symbols_of
from .decided import RULES, Born, Element, NodeSample, Results
from .words import name_of_node

if TYPE_CHECKING:
    import onnx_ir as ir

    from .infer import Inference
    from .passes import Passes
    from .types import Shape

    Axis = tuple[ir.Value, int]
    Sample = dict[str, int]

Place = tuple[str, int]  # the name of a value, and one of its axes

# For each pair of samples in `.passes`: the first number of its first, second and third sample, and
# the distance to that of the next symbol. Small numbers suit short tables, large ones a TopK of
# many. No sample of large pictures has one of the large ones.
_NUMBERS = (
    ((17, 2), (59, 4), (211, 10)),
    ((4, 1), (9, 3), (20, 5)),
    ((131, 2), (457, 6), (2053, 10)),
    ((131, 2), (457, 6), (2053, 10)),
)


class NeedsSamplesError(Exception):
    """A model without open inputs has an extent that data decides: one sample is not enough."""


class Meeting(NamedTuple):
    """A symbol that must be equal to an earlier one, since a node reads both."""

    symbol: str
    other: str
    where: str


class MeetingError(Exception):
    """Samples had other values for symbols that must be equal."""

    def __init__(self, meeting: Meeting) -> None:
        super().__init__(meeting)
        self.meeting = meeting


class ChanceError(Exception):
    """Extents that were equal in all samples by chance."""

    def __init__(self, places: frozenset[Place]) -> None:
        super().__init__(places)
        self.places = places


class Births:
    """The symbols of a model whose values the data decides.

    Parameters
    ----------
    inputs : sequence of int or str
        The extents of the model's inputs; new symbols have other names.
    number : int
        Which numbers the samples have.
    can_differ : bool
        Whether there are two samples or more.
    equal : sequence of Meeting
        Symbols that are equal to another one, or the model is wrong.
    shared : collection of str
        Of a loop's body: the symbols of the model around it, which rounds change.
    before : int
        How many symbols the models around a body have: their values are different ones.
    apart : frozenset of Place
        Axes that have a symbol each in a body, for what was assumed of them does not hold.

    Attributes
    ----------
    of : dict of ir.Value to tuple
        For each result with such an extent the symbol of each axis; None for another axis.
    nodes : dict of ir.Node to list of str
        The symbols that each node defines.
    assumed : list
        Axes of values that are as long as another axis or a number in all samples, and so in a
        body.
    """

    def __init__(
        self,
        inputs: Sequence[Extent],
        number: int,
        can_differ: bool,
        equal: Sequence[Meeting] = (),
        shared: Collection[str] = (),
        before: int = 0,
        apart: frozenset[Place] = frozenset(),
    ) -> None:
        self.of: dict[ir.Value, tuple[str | None, ...]] = {}
        self.nodes: dict[ir.Node, list[str]] = {}
        self.assumed: list[tuple[Axis, Axis | int]] = []
        self.equal, self.shared, self._before, self.apart = equal, shared, before, apart
        self._taken = list(symbols_of(inputs))
        self._first = len(self._taken)
        self.number, self._can_differ = number, can_differ
        self._names: dict[ir.Node, dict[int, str]] = {}  # of the labels of a node
        self._equal: dict[object, ir.Node] = {}
        self._elements: dict[Element, str] = {}
        self._forced: list[ir.Value] = []

    def new(self, stem: str = "n") -> str:
        """Return a new symbol."""
        if not self._can_differ:
            raise NeedsSamplesError
        name = identifier(f"{stem}{len(self._taken) - self._first + 1}", self._taken)
        self._taken.append(name)
        return name

    def check_chance(self, known: Mapping[ir.Value, ir.Shape]) -> None:
        """Raise ChanceError if what was assumed of axes does not hold for their extents."""

        def extent(of: Axis | int) -> object:
            return of if isinstance(of, int) else known[of[0]][of[1]]

        found = {axis for axis, other in self.assumed if extent(axis) != extent(other)}
        if found:
            apart = {(str(value.name), axis) for value, axis in found}
            raise ChanceError(self.apart | apart)

    @property
    def count(self) -> int:
        """How many symbols there are, also of the models around."""
        return self._before + len(self._taken) - self._first

    def is_born(self, symbol: str) -> bool:
        """Return True if it is a symbol of this model, not of its inputs."""
        return self._taken.index(symbol) >= self._first

    def value(self, symbol: str, sample: Sample, number: int) -> int:
        """Return the value of a symbol in the sample of a number, 0 for the first one."""
        first, step = _NUMBERS[self.number][min(number, 2)]
        for one in self.equal:
            if one.symbol == symbol:
                return sample.setdefault(symbol, sample[one.other])
        place = self._before + self._taken.index(symbol) - self._first
        return sample.setdefault(symbol, first + step * place)

    def meeting(self, node: ir.Node, one: Inference, sample: Sample) -> Meeting | None:
        """Return two symbols whose values differ where the inputs of a node meet, if some do."""
        names = {value: name for name, value in sample.items()}
        shapes = [one.types[value].shape or () for value in node.inputs if value in one.types]
        for first in shapes:
            for second in shapes:
                for a, b in zip(reversed(first), reversed(second), strict=False):
                    pair = [names.get(a or 0, ""), names.get(b or 0, "")]
                    pair.sort(key=lambda name: self._taken.index(name) if name else -1)
                    can_be = all(pair) and (self.is_born(pair[1]) or {*pair} <= {*self.shared})
                    if a != b and 1 not in (a, b) and can_be:
                        return Meeting(pair[1], pair[0], name_of_node(node))
        return None

    def complete(
        self, node: ir.Node, index: int, one: Inference, sample: Sample, number: int
    ) -> Shape | None:
        """Return the shape of an output for a sample; None if its data does not decide it.

        `one` has the types and the constants of the sample so far.
        """
        rule = RULES.get(node.op_type) if not node.domain else None
        extents = rule(NodeSample(node, one)) if rule else None
        if extents is None:
            return None
        names = self._names_of(node, extents)
        shape = extents[index]
        born = tuple(names[one.label] if isinstance(one, Born) else None for one in shape)
        if any(born):
            self.of[node.outputs[index]] = born
        pairs = zip(shape, born, strict=True)
        return tuple(
            self.value(symbol, sample, number) if symbol else int(extent)  # type: ignore[arg-type]
            for extent, symbol in pairs
        )

    def force(self, node: ir.Node, passes: Passes) -> bool:
        """Let a node find extents that no expression has; return True if it can."""
        rule = RULES.get(node.op_type) if not node.domain else None
        if rule is None or node in self._names:
            return False
        extents = rule(NodeSample(node, passes.all[0], passes.open.elements))
        if extents is None or not any(isinstance(one, Born) for shape in extents for one in shape):
            return False
        names = self._names_of(node, extents)
        for output, shape in zip(node.outputs, extents, strict=False):
            born = tuple(names[one.label] if isinstance(one, Born) else None for one in shape)
            self.of[output] = born
            self._forced.append(output)
        for one, sample in zip(passes.all, passes.samples, strict=True):
            self.fill(one, sample)
        return True

    def fill(self, one: Inference, sample: Sample) -> None:
        """Give the symbols of `force` their values in a sample."""
        for output in self._forced:
            sizes = one.types[output].shape or ()
            pairs = zip(self.of[output], sizes, strict=True)
            sample |= {name: size or 0 for name, size in pairs if name}

    def _names_of(self, node: ir.Node, extents: Results) -> dict[int, str]:
        """Return the symbols of a node; equal nodes and equal elements have equal ones."""
        if node in self._names:
            return self._names[node]
        attributes = sorted((name, str(one)) for name, one in node.attributes.items())
        key = (node.op_type, tuple(map(id, node.inputs)), tuple(attributes))
        self.nodes[node] = []
        if key in self._equal:
            first = self._equal[key]
            self.nodes[node], self._names[node] = self.nodes[first], self._names[first]
            return self._names[node]
        self._equal[key] = node
        names: dict[int, str] = {}
        for one in (extent for shape in extents for extent in shape if isinstance(extent, Born)):
            if one.label not in names:
                known = self._elements.get(one.element) if one.element else None
                names[one.label] = known or self.new()
                if known is None:
                    self.nodes[node].append(names[one.label])
                if one.element:
                    self._elements[one.element] = names[one.label]
        self._names[node] = names
        return names
