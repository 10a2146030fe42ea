"""A node as a row of read/contrib.py sees it, and statements that rows share."""

from __future__ import annotations

from typing import Any, NamedTuple

CAST_LIKE_SINCE = 15  # the opset from which a number takes the data type of a value
LAST_AXES_SINCE = 18  # the opset from which the axes of a ReduceMean are an input
# Metadata of a Clip whose elements outside are an IndexError of the call: the input they are of.
REFUSED = "dso.refused"


class UnsupportedError(Exception):
    """A part of a node that no row has; the text names it."""


class Call(NamedTuple):
    """A node, as its row sees it."""

    given: list[bool]  # for each input whether it is there
    attributes: dict[str, Any]
    opset: int
    shapes: list[tuple[int, ...] | None]  # of the inputs, where the model says them; 0 is open

    def has(self, index: int) -> bool:
        """Return True if an input is given."""
        return index < len(self.given) and self.given[index]

    def number(self, name: str, default: float) -> float:
        """Return an attribute."""
        return float(self.attributes.get(name, default))

    def count(self, name: str, default: int = 0) -> int:
        """Return an attribute that is an integer."""
        return int(self.attributes.get(name, default))

    def rank(self, index: int) -> int | None:
        """Return how many axes an input has, or None if the model does not say it."""
        shape = self.shapes[index]
        return None if shape is None else len(shape)

    def extent(self, index: int, axis: int) -> int:
        """Return an extent of an input, or 0 if the model does not say it."""
        shape = self.shapes[index] if self.has(index) else None
        return shape[axis] if shape and -len(shape) <= axis < len(shape) else 0

    def refuse(self, *names: str) -> None:
        """Refuse attributes that are not 0."""
        for name in names:
            if self.attributes.get(name):
                raise UnsupportedError(name)


def written(attributes: dict[str, Any]) -> str:
    """Return attributes as text."""

    def one(value: Any) -> str:
        if isinstance(value, bytes):
            return f'"{value.decode()}"'
        return str(list(value)) if isinstance(value, (list, tuple)) else repr(value)

    texts = [f"{name} = {one(value)}" for name, value in attributes.items()]
    return f"<{', '.join(texts)}>" if texts else ""


def ranked(name: str, index: int, rank: int, call: Call) -> str:
    """Return the statement of an input with so many axes: a Transpose refuses others."""
    if call.rank(index) not in (rank, None):
        raise UnsupportedError(f"input {index} of {call.rank(index)} axes, not {rank}")
    return f" {name} = Transpose<perm = {[*range(rank)]}>(i{index})"


def number(name: str, value: float, like: str, call: Call) -> str:
    """Return a constant of the data type of `like`."""
    constant = f"Constant<value = float {{{value!r}}}>()"
    if call.opset < CAST_LIKE_SINCE:
        return f" {name} = {constant}"
    return f" {name}f = {constant} {name} = CastLike({name}f, {like})"


def integers(name: str, *values: int) -> str:
    """Return a constant of one axis."""
    numbers = ", ".join(map(str, values))
    return f" {name} = Constant<value = int64[{len(values)}] {{{numbers}}}>()"


def scalar(name: str, value: int) -> str:
    """Return a constant without axes."""
    return f" {name} = Constant<value = int64 {{{value}}}>()"


def cast(name: str, of: str, like: str, call: Call) -> str:
    """Return a value as the data type of `like`."""
    kind = f"CastLike({of}, {like})" if call.opset >= CAST_LIKE_SINCE else f"Cast<to = 1>({of})"
    return f" {name} = {kind}"


def extent(name: str, of: str, axis: int) -> str:
    """Return the extent of an axis, as a scalar."""
    return f" {name}s = Shape({of}){scalar(f'{name}i', axis)} {name} = Gather({name}s, {name}i)"


def integer_range(name: str, limit: str, first: str = "") -> str:
    """Return the integers from `first`, or 0, to before `limit`."""
    text = "" if first else scalar(f"{name}0", 0)
    return f"{text}{scalar(f'{name}1', 1)} {name} = Range({first or f'{name}0'}, {limit}, {name}1)"
