"""The extents that data decides: which axes of results, and which elements are extents."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from .resized import is_separable

if TYPE_CHECKING:
    import numpy
    import onnx_ir as ir

    from .infer import Inference

_RESIZED = (1, 10)  # TensorProto.DataType: FLOAT and FLOAT16
_FAR = 16  # producers between an element and the number it is


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


class NodeSample:
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

    def dtype(self, index: int) -> int:
        value = self.node.inputs[index]
        assert value is not None
        return self._one.types[value].dtype

    def has(self, index: int) -> bool:
        inputs = self.node.inputs
        return index < len(inputs) and inputs[index] is not None

    def numbers(self, index: int) -> list[int | Element]:
        """Return the elements of an input as whole numbers."""
        return [one if isinstance(one, Element) else int(one) for one in self.elements(index)]

    def elements(self, index: int) -> list[Any]:
        """Return the elements of an input: numbers, and `Element` where data decides."""
        value = self.node.inputs[index]
        assert value is not None
        found = _known(value, self._one).reshape(-1).tolist()
        if value in self._is_open:
            differs = self._is_open[value].reshape(-1)
            found = [Element(value, i) if differs[i] else one for i, one in enumerate(found)]
        return found

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
        if node.op_type == "Split" and len(one.types[inputs[0]].shape or ()) == 1:
            before = node.outputs[: node.outputs.index(value)]
            start = sum((one.types[part].shape or (0,))[0] or 0 for part in before)
            return _known(inputs[0], one, left - 1)[start : start + (shape[0] or 0)]
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


def _nonzero(one: NodeSample) -> Results:
    return [[max(len(one.shape(0)), 1), Born(0)]]


def _compress(one: NodeSample) -> Results:
    if "axis" not in one.node.attributes:
        return [[Born(0)]]
    return [_replaced(one.shape(0), one.axis())]


def _unique(one: NodeSample) -> Results:
    shape, whole = one.shape(0), 1
    for extent in shape:
        whole *= extent
    if "axis" not in one.node.attributes:
        return [[Born(0)], [Born(0)], [whole], [Born(0)]]
    axis = one.axis()
    return [_replaced(shape, axis), [Born(0)], [shape[axis]], [Born(0)]]


def _boxes(one: NodeSample) -> Results:
    return [[Born(0), 3]]


def _axes(axes: Sequence[int | Element], rank: int) -> list[int] | None:
    """Return axes counted from the first one; None if one is not known, wrong, or there twice."""
    found = [axis % rank for axis in axes if isinstance(axis, int) and -rank <= axis < rank]
    return found if len({*found}) == len(axes) else None


def _pad(one: NodeSample) -> Results | None:
    found: list[int | Element | None] = [*one.shape(0)]
    pads, rank = one.numbers(1), len(found)
    axes = _axes(one.numbers(3) if one.has(3) else range(rank), rank)
    if axes is None or len(pads) != 2 * len(axes):
        return None
    for axis, before, after in zip(axes, pads, pads[len(axes) :], strict=False):
        extent = found[axis]
        is_known = isinstance(before, int) and isinstance(after, int)
        found[axis] = extent + before + after if is_known else None  # type: ignore[operator]
    return _labelled(found)


def _resize(one: NodeSample) -> Results | None:
    found: list[int | Element | None] = [*one.shape(0)]
    is_scaled = one.has(2) and one.shape(2) != [0]
    place = 2 if is_scaled else 3
    numbers = one.elements(place) if one.has(place) else []
    axes = _axes(one.node.attributes.get_ints("axes") or range(len(found)), len(found))
    is_open = len(found) > 1 and one.dtype(0) in _RESIZED and is_separable(one.node)
    is_open = is_open and not one.node.attributes.get_int("antialias", 0)
    if axes is None or len(numbers) != len(axes) or not is_open:
        return None
    for axis, number in zip(axes, numbers, strict=True):
        if not is_scaled:
            found[axis] = number
        elif number != 1:
            found[axis] = None
    return _labelled(found)


def _slice(one: NodeSample) -> Results | None:
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


def _range(one: NodeSample) -> Results:
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


def _reshape(one: NodeSample) -> Results | None:
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


def _expand(one: NodeSample) -> Results:
    wanted, shape = one.numbers(1), one.shape(0)
    rank = max(len(wanted), len(shape))
    shape = [1] * (rank - len(shape)) + shape
    both = zip([*[1] * (rank - len(wanted)), *wanted], shape, strict=True)
    return _labelled([b if a == 1 or (isinstance(a, Element) and b != 1) else a for a, b in both])


def _constant(one: NodeSample) -> Results:
    return _labelled(one.numbers(0))


def _tile(one: NodeSample) -> Results:
    both = zip(one.shape(0), one.numbers(1), strict=True)
    return _labelled([extent * n if isinstance(n, int) else None for extent, n in both])


def _top(one: NodeSample) -> Results:
    shape = _replaced(one.shape(0), one.axis(-1))
    return [shape, shape]


def _one_hot(one: NodeSample) -> Results:
    shape: list[int | Element] = [*one.shape(0)]
    axis = int(one.node.attributes.get_int("axis", -1)) % (len(shape) + 1)
    return _labelled([*shape[:axis], one.numbers(1)[0], *shape[axis:]])


def _split(one: NodeSample) -> Results:
    shape, axis = one.shape(0), one.axis()
    return [_replaced(shape, axis, label) for label in range(len(one.node.outputs))]


RULES: dict[str, Callable[[NodeSample], Results | None]] = {
    "Compress": _compress,
    "ConstantOfShape": _constant,
    "Expand": _expand,
    "NonMaxSuppression": _boxes,
    "NonZero": _nonzero,
    "OneHot": _one_hot,
    "Pad": _pad,
    "Range": _range,
    "Reshape": _reshape,
    "Resize": _resize,
    "Slice": _slice,
    "Split": _split,
    "Tile": _tile,
    "TopK": _top,
    "Unique": _unique,
}
