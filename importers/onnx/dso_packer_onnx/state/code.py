"""The bytecode of states: a session's tensors in place of inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from packer import ExportError

from ..extent import in_c
from ..operator import shape_of

if TYPE_CHECKING:
    import onnx_ir as ir

    from packer.relax import Code, Program, Register

    from ..variant import Variant
    from .cache import State
    from .parts import Part


class Guard(NamedTuple):
    """A function expects that a state of the session has a value, or that it has none."""

    state: int
    has_value: bool
    text: str  # of the error


def guards_of(parts: Sequence[Part], variants: Sequence[Variant]) -> Iterator[list[Guard]]:
    """Yield for each part what it expects of the other functions.

    States that others make exist. Functions that read the part's own states were not called.
    """
    ends = [(_numbers(one, "inputs"), _numbers(one, "outputs")) for one in variants]
    made = {part.function: set[int]() for part in parts}
    for part, (_, outputs) in zip(parts, ends, strict=True):
        made[part.function] |= outputs
    for part, variant, (inputs, outputs) in zip(parts, variants, ends, strict=True):
        found = []
        begun = {one for one in outputs - inputs if variant.states[one].is_appended}
        for other, states in made.items():
            if other != part.function and (missing := inputs & states):
                text = f"{part.function}: expected a session with the state that {other!r} makes"
                text += f", found one without; call session[{other!r}] first"
                found.append(Guard(min(missing), True, text))
        readers = (
            one.function for one, (read, _) in zip(parts, ends, strict=True) if read & outputs
        )
        for other in dict.fromkeys(readers):
            if other != part.function and (old := made[other] - outputs | begun):
                text = f"{part.function}: expected a session before {other!r}, found one with its "
                text += "state; reset the session"
                found.append(Guard(min(old), False, text))
        yield found


def _numbers(variant: Variant, ends: str) -> set[int]:
    """Return the numbers of the states among the inputs or outputs of a variant."""
    names = {value.name for value in getattr(variant.graph, ends)}
    states = enumerate(variant.states)
    return {index for index, state in states if getattr(state, ends[:-1]) in names}


class StateWriter:
    """Writes the calls of ``dso.state.*`` of one function."""

    def __init__(self, code: Code, variant: Variant) -> None:
        self._code, self._graph, self._states = code, variant.graph, variant.states
        self._inputs = {state.input: index for index, state in enumerate(variant.states)}
        self._read = {value.name for value in variant.graph.inputs}
        self.outputs = {state.output: index for index, state in enumerate(variant.states)}

    def is_state(self, output: ir.Value) -> bool:
        """Return True if an output is a state."""
        return output.name in self.outputs

    def kind(self, output: ir.Value) -> str:
        """Return how memory for an output that is a state is found: its first rows, or all."""
        return "append" if self._state(output).is_appended else "write"

    def _state(self, output: ir.Value) -> State:
        return self._states[self.outputs[str(output.name)]]

    def expect(self, guards: Sequence[Guard]) -> None:
        """Check what the function expects of the session."""
        for guard in guards:
            self._code.run("dso.state.expect", guard.state, int(guard.has_value), guard.text)

    def extents(
        self, symbols: Sequence[str], known: Mapping[str, int]
    ) -> Iterator[tuple[str, Register]]:
        """Yield each open extent that only states have, with its present value."""
        for value in self._graph.inputs:
            for axis, extent in enumerate(shape_of(value)):
                if value.name in self._inputs and extent in symbols and in_c(extent) not in known:
                    index = self._inputs[str(value.name)]
                    yield str(extent), self._code.call("dso.state.extent", index, axis)

    def open(
        self, state: Callable[[str, int, ir.Value], Register], values: dict[ir.Value, Register]
    ) -> None:
        """Put the tensors of states into values; rows are appended to memory that has room."""
        for value in self._graph.outputs:
            state_of = self._state(value) if self.is_state(value) else None
            if state_of is not None and state_of.is_appended and state_of.input in self._read:
                values[value] = state("append", self.outputs[str(value.name)], value)
        for value in self._graph.inputs:
            if value.name in self._inputs:
                values[value] = state("read", self._inputs[str(value.name)], value)


def write_choices(program: Program, parts: Sequence[Part], variants: Sequence[Variant]) -> None:
    """Write each function of two graphs: it calls one of them, as its session has state or not.

    Raises ExportError if inputs or results of the two have other names.
    """
    of_name = {part.name: one for part, one in zip(parts, variants, strict=True)}
    for part in parts:
        if not part.is_first:
            continue
        first, later = of_name[part.name], of_name[part._replace(is_first=False).name]
        names = [str(value.name) for value in first.arguments]
        given = [str(value.name) for value in later.arguments]
        results = [[value.name for value in one.results] for one in (first, later)]
        if not set(given) <= set(names) or results[0] != results[1]:
            text = f"{part.function}: expected equal inputs and results of the first call and of"
            found = f"{names} to {results[0]}, and {given} to {results[1]}"
            raise ExportError(f"{text} later ones, found {found}; export both files again")
        made = _numbers(first, "outputs") & _numbers(later, "inputs")
        if not made:
            text = "expected state that the first call makes, found none; give --state in=out"
            raise ExportError(f"{part.function}: {text}")
        code = program.function(part.function, names)
        has_state, begin = code.call("dso.state.extent", min(made), 0), code.label()
        code.jump_if_zero(has_state, begin)
        code.release(has_state)
        later_name = part._replace(is_first=False).name
        code.ret(code.call(later_name, *(code.params[names.index(one)] for one in given)))
        code.place(begin)
        code.ret(code.call(part.name, *code.params))
