"""The bytecode of states: a session's tensors in place of inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from ..extent import in_c
from ..operator import shape_of

if TYPE_CHECKING:
    import onnx_ir as ir

    from packer.relax import Code, Register

    from ..variant import Variant


class StateWriter:
    """Writes the calls of ``dso.state.*`` of one function."""

    def __init__(self, code: Code, variant: Variant) -> None:
        self._code, self._graph, self._states = code, variant.graph, variant.states
        self._inputs = {state.input: index for index, state in enumerate(variant.states)}
        self.outputs = {state.output: index for index, state in enumerate(variant.states)}

    def is_state(self, output: ir.Value) -> bool:
        """Return True if an output is a state."""
        return output.name in self.outputs

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
            if self.is_state(value) and self._states[self.outputs[str(value.name)]].is_appended:
                values[value] = state("append", self.outputs[str(value.name)], value)
        for value in self._graph.inputs:
            if value.name in self._inputs:
                values[value] = state("read", self._inputs[str(value.name)], value)
