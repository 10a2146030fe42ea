"""A model with one set of input shapes, and the bodies of its branches and loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import onnx_ir as ir

    from .extent import Extent
    from .operator import Operator
    from .read.equations import Conditions
    from .state import State
    from .state.code import Guard


class Body(NamedTuple):
    """A graph that nodes of another one run, as a function of the program."""

    function: str
    variant: Variant


class Variant(NamedTuple):
    """A model with one set of input shapes: its inputs and outputs, and the calls in order."""

    graph: ir.Graph
    operators: Sequence[Operator]
    conditions: Conditions
    named: Mapping[str, Extent] = {}  # the expressions of extents that have names (named.py)
    states: Sequence[State] = ()  # inputs and outputs that a session keeps
    bodies: Sequence[Body] = ()  # what its nodes run: branches, and the rounds of loops
    guards: Sequence[Guard] = ()  # what it expects of the session

    @property
    def arguments(self) -> list[ir.Value]:
        """The inputs that are not state."""
        states = {state.input for state in self.states}
        return [value for value in self.graph.inputs if value.name not in states]

    @property
    def results(self) -> list[ir.Value]:
        """The outputs that are not state."""
        states = {state.output for state in self.states}
        return [value for value in self.graph.outputs if value.name not in states]


def with_bodies(variant: Variant) -> Iterator[Variant]:
    """Yield a variant and its bodies, and theirs."""
    yield variant
    for body in variant.bodies:
        yield from with_bodies(body.variant)


def all_operators(variant: Variant) -> list[Operator]:
    """Return the operators of a variant and of its bodies."""
    return [operator for one in with_bodies(variant) for operator in one.operators]


def function_names(name: str, count: int) -> list[str]:
    """Return the function of each variant of a program."""
    return [name] if count == 1 else [f"{name}_{index}" for index in range(1, count + 1)]
