"""Extents that the data of a call decides: the results that have them, and their symbols.

Such an extent is a new symbol, whose value is known when the data is. Inference continues with a
number for it in each sample, as for the open extents of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..extent import Extent, identifier, symbols_of
from .words import name_of_node

if TYPE_CHECKING:
    import numpy
    import onnx_ir as ir

    from .infer import Inference
    from .passes import Passes
    from .types import Shape

    Sample = dict[str, int]

# The first number of the first, second and third sample, and the distance to that of the next
# symbol. Small numbers suit short tables, large ones a TopK of many.
_NUMBERS = (
    ((17, 2), (379, 6), (1031, 10)),
    ((4, 1), (9, 3), (20, 5)),
    ((131, 2), (457, 6), (2053, 10)),
)
_FAR = 16  # producers between an element and the number it is


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


@dataclass(frozen=True)
class Element:
    """An element that data decides; not a tuple, which an array would take apart."""

    value: ir.Value
    index: int


class Born(NamedTuple):
    """An extent that data decides: its number in the node, and the element that it is."""

    label: int
    element: Element | None = None


Results = list[list["int | Born"]]  # the shape of each output


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

    Attributes
    ----------
    of : dict of ir.Value to tuple
        For each result with such an extent the symbol of each axis; None for another axis.
    nodes : dict of ir.Node to list of str
        The symbols that each node defines.
    """

    def __init__(
        self,
        inputs: Sequence[Extent],
        number: int,
        can_differ: bool,
        equal: Sequence[Meeting] = (),
    ) -> None:
        self.of: dict[ir.Value, tuple[str | None, ...]] = {}
        self.nodes: dict[ir.Node, list[str]] = {}
        self.equal = equal
        self._taken = list(symbols_of(inputs))
        self._first = len(self._taken)
        self.number, self._can_differ = number, can_differ
        self._names: dict[ir.Node, dict[int, str]] = {}  # of the labels of a node
        self._equal: dict[object, ir.Node] = {}
        self._elements: dict[Element, str] = {}

    def new(self, stem: str = "n") -> str:
        """Return a new symbol."""
        if not self._can_differ:
            raise NeedsSamplesError
        name = identifier(f"{stem}{len(self._taken) - self._first + 1}", self._taken)
        self._taken.append(name)
        return name

    def value(self, symbol: str, sample: Sample, number: int) -> int:
        """Return the value of a symbol in the sample of a number, 0 for the first one."""
        first, step = _NUMBERS[self.number][min(number, 2)]
        for one in self.equal:
            if one.symbol == symbol:
                return sample.setdefault(symbol, sample[one.other])
        return sample.setdefault(symbol, first + step * (self._taken.index(symbol) - self._first))

    def meeting(self, node: ir.Node, one: Inference, sample: Sample) -> Meeting | None:
        """Return two symbols whose values differ where the inputs of a node meet, if some do."""
        names = {value: name for name, value in sample.items()}
        shapes = [one.types[value].shape or () for value in node.inputs if value in one.types]
        for first in shapes:
            for second in shapes:
                for a, b in zip(reversed(first), reversed(second), strict=False):
                    pair = [names.get(a or 0, ""), names.get(b or 0, "")]
                    pair.sort(key=lambda name: self._taken.index(name) if name else -1)
                    is_born = all(pair) and self._taken.index(pair[1]) >= self._first
                    if a != b and 1 not in (a, b) and is_born:
                        return Meeting(pair[1], pair[0], name_of_node(node))
        return None

    def complete(
        self, node: ir.Node, index: int, one: Inference, sample: Sample, number: int
    ) -> Shape | None:
        """Return the shape of an output for a sample; None if its data does not decide it.

        `one` has the types and the constants of the sample so far.
        """
        rule = _RULES.get(node.op_type) if not node.domain else None
        extents = rule(_Node(node, one)) if rule else None
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
        rule = _RULES.get(node.op_type) if not node.domain else None
        if rule is None or node in self._names:
            return False
        extents = rule(_Node(node, passes.all[0], passes.open.elements))
        if extents is None or not any(isinstance(one, Born) for shape in extents for one in shape):
            return False
        names = self._names_of(node, extents)
        for output, shape in zip(node.outputs, extents, strict=False):
            born = tuple(names[one.label] if isinstance(one, Born) else None for one in shape)
            self.of[output] = born
            for one, sample in zip(passes.all, passes.samples, strict=True):
                sizes = one.types[output].shape or ()
                sample |= {name: n or 0 for name, n in zip(born, sizes, strict=True) if name}
        return True

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


class _Node:
    """A node with the shapes and the known numbers of its inputs, in one sample."""

    def __init__(
        self,
        node: ir.Node,
        one: Inference,
        is_open: Mapping[ir.Value, numpy.ndarray[Any, Any]] | None = None,
    ) -> None:
        self.node, self._one, self._is_open = node, one, is_open or {}

    def shape(self, index: int) -> list[int]:
        value = self.node.inputs[index]
        assert value is not None
        return [extent or 0 for extent in self._one.types[value].shape or ()]

    def has(self, index: int) -> bool:
        inputs = self.node.inputs
        return index < len(inputs) and inputs[index] is not None

    def numbers(self, index: int) -> list[int | Element]:
        """Return the elements of an input."""
        value = self.node.inputs[index]
        assert value is not None
        found = _known(value, self._one).reshape(-1).tolist()
        if value in self._is_open:
            differs = self._is_open[value].reshape(-1)
            found = [Element(value, i) if differs[i] else one for i, one in enumerate(found)]
        return [one if isinstance(one, Element) else int(one) for one in found]

    def axis(self, default: int = 0) -> int:
        return int(self.node.attributes.get_int("axis", default)) % max(len(self.shape(0)), 1)


def _known(value: ir.Value, one: Inference, left: int = _FAR) -> numpy.ndarray[Any, Any]:
    """Return the elements of a value as objects: numbers, and `Element` where data decides."""
    import numpy

    if value in one.constants:
        return one.constants[value].astype(object)
    shape, node = tuple(extent or 0 for extent in one.types[value].shape or ()), value.producer()
    inputs = [] if node is None else [i for i in node.inputs if i is not None]
    if node is not None and not node.domain and left and inputs:
        if node.op_type in ("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"):
            return _known(inputs[0], one, left - 1).reshape(shape)
        if node.op_type == "Concat":
            parts = [_known(part, one, left - 1) for part in inputs]
            return numpy.concatenate(parts, node.attributes.get_int("axis", 0))
        if node.op_type == "Gather" and inputs[1] in one.constants:
            axis = node.attributes.get_int("axis", 0)
            found = _known(inputs[0], one, left - 1).take(one.constants[inputs[1]], axis)
            return numpy.array(found, object).reshape(shape)
    made = numpy.empty(shape, object)
    for index, place in enumerate(numpy.ndindex(*shape)):
        made[place] = Element(value, index)
    return made


def _replaced(shape: list[int], axis: int, label: int = 0) -> list[int | Born]:
    return [Born(label) if i == axis else extent for i, extent in enumerate(shape)]


def _nonzero(one: _Node) -> Results:
    return [[max(len(one.shape(0)), 1), Born(0)]]


def _compress(one: _Node) -> Results:
    if "axis" not in one.node.attributes:
        return [[Born(0)]]
    return [_replaced(one.shape(0), one.axis())]


def _unique(one: _Node) -> Results:
    shape, whole = one.shape(0), 1
    for extent in shape:
        whole *= extent
    if "axis" not in one.node.attributes:
        return [[Born(0)], [Born(0)], [whole], [Born(0)]]
    axis = one.axis()
    return [_replaced(shape, axis), [Born(0)], [shape[axis]], [Born(0)]]


def _boxes(one: _Node) -> Results:
    return [[Born(0), 3]]


def _slice(one: _Node) -> Results | None:
    shape = one.shape(0)
    axes: list[int | Element] = [*range(len(one.numbers(1)))]
    if one.has(3):
        axes = one.numbers(3)
    found: list[int | Born] = [*shape]
    for label, axis in enumerate(axes):
        if isinstance(axis, Element):
            return None
        found[axis % len(shape)] = Born(label)
    return [found]


def _range(one: _Node) -> Results:
    start, limit, delta = (one.numbers(index)[0] for index in range(3))
    is_limit = (start, delta) == (0, 1) and isinstance(limit, Element)
    return [[Born(0, limit if is_limit else None)]]  # type: ignore[arg-type]


def _labelled(found: Sequence[int | Element | None]) -> Results:
    """Return a shape with a label for each extent that is not known."""
    return [
        [
            extent
            if isinstance(extent, int)
            else Born(axis, extent if isinstance(extent, Element) else None)
            for axis, extent in enumerate(found)
        ]
    ]


def _reshape(one: _Node) -> Results | None:
    shape, zero = one.shape(0), one.node.attributes.get_int("allowzero", 0)
    found: list[int | Element | None] = []
    for axis, number in enumerate(one.numbers(1)):
        if isinstance(number, Element) or number > 0 or (number == 0 and zero):
            found.append(number)
        elif number < 0:
            found.append(None)
        elif axis < len(shape):
            found.append(shape[axis])
        else:
            return None
    return _labelled(found)


def _expand(one: _Node) -> Results:
    wanted, shape = one.numbers(1), one.shape(0)
    rank = max(len(wanted), len(shape))
    shape = [1] * (rank - len(shape)) + shape
    both = zip([*[1] * (rank - len(wanted)), *wanted], shape, strict=True)
    return _labelled([b if a == 1 or (isinstance(a, Element) and b != 1) else a for a, b in both])


def _constant(one: _Node) -> Results:
    return _labelled(one.numbers(0))


def _tile(one: _Node) -> Results:
    both = zip(one.shape(0), one.numbers(1), strict=True)
    return _labelled([extent * n if isinstance(n, int) else None for extent, n in both])


def _top(one: _Node) -> Results:
    shape = _replaced(one.shape(0), one.axis(-1))
    return [shape, shape]


def _one_hot(one: _Node) -> Results:
    shape: list[int | Element] = [*one.shape(0)]
    axis = int(one.node.attributes.get_int("axis", -1)) % (len(shape) + 1)
    return _labelled([*shape[:axis], one.numbers(1)[0], *shape[axis:]])


def _split(one: _Node) -> Results:
    shape, axis = one.shape(0), one.axis()
    return [_replaced(shape, axis, label) for label in range(len(one.node.outputs))]


_RULES: dict[str, Callable[[_Node], Results | None]] = {
    "Compress": _compress,
    "ConstantOfShape": _constant,
    "Expand": _expand,
    "NonMaxSuppression": _boxes,
    "NonZero": _nonzero,
    "OneHot": _one_hot,
    "Range": _range,
    "Reshape": _reshape,
    "Slice": _slice,
    "Split": _split,
    "Tile": _tile,
    "TopK": _top,
    "Unique": _unique,
}
