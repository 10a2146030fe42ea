"""The profile of a function of bytecode: a separate machine measures each call instruction."""

from __future__ import annotations

from .._core import vm_builtin_names
from ..graph.profile import OperatorTime, Profile
from .machine import function_of, make_machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..graph.model_record import GraphNode, ModelRecord
    from ..modules.vm import VMExecutable

    # (function, called function, calls, nanoseconds)
    Cost = tuple[str, str, int, int]


def profile_function(
    executable: VMExecutable, devices: Sequence[Any], name: str, args: Sequence[Any], number: int
) -> Profile:
    """Call a function of bytecode `number` times after a first call, and measure its calls.

    An operator is a call instruction, named by the record of the model if it has one. The machine's
    built-in functions, and functions that the record lacks, are a row each. Times include the step
    from the call before.
    """
    if number < 1:
        raise ValueError(f"profile: number {number}, expected at least 1")
    machine = make_machine(executable, devices)
    function = function_of(machine, executable, name)
    if function is None:
        raise executable._not_found(name, query_imports=False)
    function(*args)  # caches, page faults and memory
    machine.measure()
    for _ in range(number):
        function(*args)
    record = executable.model_record
    extents = _extents(record, name, args)
    return Profile(_Rows(record, extents, number).rows(machine.costs()))


def _extents(record: ModelRecord | None, name: str, args: Sequence[Any]) -> dict[str, int]:
    """Return the symbolic extents of a call."""
    ends = record.ends_of(name) if record is not None else None
    found: dict[str, int] = {}
    for info, value in zip(ends[0] if ends else (), args, strict=False):
        for extent, given in zip(info.shape, getattr(value, "shape", ()), strict=False):
            if isinstance(extent, str):
                found[extent] = int(given)
    return found


class _Rows:
    """Makes the rows of a profile from costs."""

    def __init__(self, record: ModelRecord | None, extents: dict[str, int], number: int) -> None:
        self._record, self._extents, self._number = record, extents, number
        self._nodes: dict[tuple[str, str], list[GraphNode]] = {}

    def rows(self, costs: Sequence[Cost]) -> list[OperatorTime]:
        """Return the operators in the order of the code, then the built-in functions."""
        builtin = set(vm_builtin_names())
        nodes = self._record.nodes if self._record is not None else ()
        known_nodes = {node.function for node in nodes}
        operators: list[OperatorTime] = []
        others: dict[str, tuple[int, int]] = {}
        for caller, called, calls, time in costs:
            if called in builtin or (known_nodes and called not in known_nodes):
                known = others.get(called, (0, 0))
                others[called] = known[0] + calls, known[1] + time
            else:
                operators.append(self._operator(caller, called, calls, time))
        return operators + [self._row(name, name, *cost) for name, cost in others.items()]

    def _operator(self, caller: str, called: str, calls: int, time: int) -> OperatorTime:
        """Name an instruction: the nodes that call one function follow each other in the code."""
        key = caller, called
        if key not in self._nodes:
            nodes = self._record.nodes if self._record is not None else ()
            self._nodes[key] = [node for node in reversed(nodes) if node.function == called]
        if not self._nodes[key]:
            return self._row(called, called, calls, time)
        node = self._nodes[key].pop()
        row = self._row(node.name, called, calls, time)
        return row._replace(op=node.op, flops=self._flops(node))

    def _flops(self, node: GraphNode) -> int:
        values = self._record.values if self._record is not None else {}
        flops = node.flops
        for name in node.outputs[:1]:
            for extent in values[name].shape if name in values else ():
                if isinstance(extent, str):
                    flops *= self._extents.get(extent, 1)
        return flops

    def _row(self, name: str, function: str, calls: int, time: int) -> OperatorTime:
        return OperatorTime(name, function, 1e-9 * time / self._number, calls=calls / self._number)
