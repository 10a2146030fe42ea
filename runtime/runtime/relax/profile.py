"""The profile of a function of bytecode: a separate machine measures each call instruction."""

from __future__ import annotations

from itertools import pairwise
from statistics import median

from .._core import Session as CoreSession
from .._core import vm_builtin_names
from ..graph.extent import extent_at
from ..graph.profile import OperatorTime, Profile
from ..tensors.dtype import string_to_dtype
from .machine import make_machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..graph.model_record import GraphNode, ModelRecord
    from ..modules.vm import VMExecutable

    # (function, called function, calls, nanoseconds: of all, or in a run)
    Cost = tuple[str, str, int, int]


def profile_function(
    executable: VMExecutable, devices: Sequence[Any], name: str, args: Sequence[Any], number: int
) -> Profile:
    """Call a function of bytecode `number` times after a first call, and measure its calls.

    An operator is a call instruction, named by the record of the model if it has one. The machine's
    built-in functions, and functions that the record lacks, are a row each. Times include the step
    from the call before. The calls use a new session, if the model has state.
    """
    if number < 1:
        raise ValueError(f"profile: number {number}, expected at least 1")
    machine = make_machine(executable, devices)
    row = executable.table_row(name)
    if row is None:
        raise executable._not_found(name, query_imports=False)
    function = CoreSession(0).function(machine, name, tuple(row.param_names), executable)
    assert function is not None
    function(*args)  # caches, page faults and memory
    machine.measure()
    costs = []
    for _ in range(number):
        function(*args)
        costs.append(machine.costs())
    record = executable.model_record
    extents = _extents(record, name, args)
    return Profile(_Rows(record, extents, number).rows(_medians(costs)))


def _medians(costs: Sequence[Sequence[Cost]]) -> list[Cost]:
    """Return all calls of each instruction, and the median of its times in a run."""
    *before, last = costs
    # Runs that have not called every instruction yet have no place for some.
    runs = [[0] * len(last), *([row[3] for row in run] for run in before if len(run) == len(last))]
    runs.append([row[3] for row in last])
    times = [[b - a for a, b in pairwise(ends)] for ends in zip(*runs, strict=True)]
    return [(*row[:3], int(median(of_row))) for row, of_row in zip(last, times, strict=True)]


def _extents(record: ModelRecord | None, name: str, args: Sequence[Any]) -> dict[str, int]:
    """Return the symbolic extents of a call."""
    ends = record.ends_of(name) if record is not None else None
    found: dict[str, int] = {}
    for info, value in zip(ends[0] if ends else (), args, strict=False):
        for extent, given in zip(info.shape, getattr(value, "shape", ()), strict=False):
            if isinstance(extent, str):
                found[extent] = int(given)
    return found


def _itemsize(dtype: str) -> int:
    _, bits, lanes = string_to_dtype(dtype)
    return (bits * lanes + 7) // 8


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
        return row._replace(op=node.op, flops=self._flops(node), nbytes=self._nbytes(node))

    def _flops(self, node: GraphNode) -> int:
        values = self._record.values if self._record is not None else {}
        flops = node.flops
        for name in node.outputs[:1]:
            for extent in values[name].shape if name in values else ():
                if isinstance(extent, str):
                    flops *= extent_at(extent, self._extents) or 1
        return flops

    def _nbytes(self, node: GraphNode) -> int:
        """Return the bytes of the inputs and outputs; 0 if an extent is not known."""
        values = self._record.values if self._record is not None else {}
        total = 0
        for name in (*node.inputs, *node.outputs):
            if name not in values:
                return 0
            info = values[name]
            nbytes = _itemsize(info.dtype)
            for extent in info.shape:
                if (value := extent_at(extent, self._extents)) is None:
                    return 0
                nbytes *= value
            total += nbytes
        return total

    def _row(self, name: str, function: str, calls: int, time: int) -> OperatorTime:
        return OperatorTime(name, function, 1e-9 * time, calls=calls / self._number)
