"""Values that show the elements of another value in another order: an algebra of views.

Reshape, Transpose, Squeeze, Slice and their like compute nothing. A chain of them is described as a
strided view of the value at its start, the base: each axis is a list of factors, from outer to
inner, and each factor is an extent with a stride in the base. A Reshape regroups the factors and
splits some; a Transpose permutes the axes. Two chains with equal factors show the same elements.

Extents are products of a number and of symbolic dimensions, so that a symbolic batch needs no
special case.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import onnx_ir as ir

from .graph import Dim, dims


class Size(NamedTuple):
    """A number times symbolic dimensions: 12 * batch is Size(12, ("batch",))."""

    number: int
    names: tuple[str, ...] = ()

    def times(self, other: Size) -> Size:
        """Return the product."""
        return Size(self.number * other.number, tuple(sorted(self.names + other.names)))

    def over(self, other: Size) -> Size | None:
        """Return the quotient, or None if it is not a size."""
        if other.number == 0 or self.number % other.number:
            return None
        names = list(self.names)
        for name in other.names:
            if name not in names:
                return None
            names.remove(name)
        return Size(self.number // other.number, tuple(names))


ONE = Size(1)


class Factor(NamedTuple):
    """A part of an axis: so many steps of a stride."""

    extent: Size
    stride: Size


class View(NamedTuple):
    """The elements of `base` in another order."""

    base: ir.Value
    # The factors of each axis, from outer to inner. An axis of extent 1 has none.
    axes: tuple[tuple[Factor, ...], ...]
    offset: int = 0  # the position of the first element in the base

    @property
    def factors(self) -> list[Factor]:
        """All factors in order, adjacent ones joined where they are one step after the other."""
        return joined([factor for axis in self.axes for factor in axis])


def size_of(extent: Dim) -> Size | None:
    """Return an extent as a size: a number, a name, or a text such as "4*batch"."""
    if isinstance(extent, int):
        return Size(extent)
    if extent.value is None:
        return None
    number, names = 1, []
    text = re.sub(r"(\w+)\*\*(\d+)", _factors, extent.value.replace(" ", ""))
    for part in text.split("*"):
        if part.isdigit():
            number *= int(part)
        elif part.isidentifier():
            names.append(part)
        else:
            return None
    return Size(number, tuple(sorted(names)))


def _factors(power: re.Match[str]) -> str:
    return "*".join([power[1]] * int(power[2]))


def extent_of(size: Size) -> Dim:
    """Return a size as an extent of a shape."""
    if not size.names:
        return size.number
    number = [str(size.number)] if size.number != 1 else []
    return ir.SymbolicDim("*".join([*number, *size.names]))


def sizes(value: ir.Value | None) -> list[Size] | None:
    """Return the shape of a value, or None if an extent is not known."""
    shape = dims(value)
    if shape is None:
        return None
    found = [size_of(extent) for extent in shape]
    return [size for size in found if size is not None] if None not in found else None


def product(items: Sequence[Size]) -> Size:
    """Return the product of sizes."""
    return Size(
        math.prod(item.number for item in items),
        tuple(sorted(name for item in items for name in item.names)),
    )


def joined(factors: Sequence[Factor]) -> list[Factor]:
    """Join adjacent factors where the outer one steps over all of the inner one."""
    found: list[Factor] = []
    for factor in factors:
        if found and found[-1].stride == factor.stride.times(factor.extent):
            found[-1] = Factor(found[-1].extent.times(factor.extent), factor.stride)
        else:
            found.append(factor)
    return found


def whole(value: ir.Value, shape: Sequence[Size] | None = None) -> View | None:
    """Return the view that shows a value as it is, or in another shape in the same order."""
    extents = sizes(value) if shape is None else list(shape)
    if extents is None or any(extent.number == 0 for extent in extents):
        return None
    axes, stride = [], ONE
    for extent in reversed(extents):
        axes.append((Factor(extent, stride),) if extent != ONE else ())
        stride = stride.times(extent)
    return View(value, tuple(reversed(axes)))


def regroup(factors: Sequence[Factor], extents: Sequence[Size]) -> list[list[Factor]] | None:
    """Divide factors among axes of these extents; None if an axis would begin inside of a step."""
    waiting = list(reversed(factors))
    axes: list[list[Factor]] = []
    for extent in extents:
        axis: list[Factor] = []
        while extent != ONE:
            if not waiting:
                return None
            factor = waiting.pop()
            rest = extent.over(factor.extent)
            if rest is not None:
                axis.append(factor)
                extent = rest
                continue
            inner = factor.extent.over(extent)
            if inner is None:
                return None
            axis.append(Factor(extent, factor.stride.times(inner)))
            waiting.append(Factor(inner, factor.stride))
            extent = ONE
        axes.append(axis)
    return axes if not waiting else None


def reshaped(view: View, extents: Sequence[Size]) -> View | None:
    """Return a view in another shape."""
    axes = regroup(view.factors, extents)
    return None if axes is None else view._replace(axes=tuple(tuple(axis) for axis in axes))
