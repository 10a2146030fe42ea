"""The drawing of a graph: a row for each operator, and lanes in which its values run down to it.

A value has one lane, from the row that makes it to the last row that reads it. A value that one row
makes for the next continues in the same lane, so a chain is a straight line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ...model_text import open_extents, signatures_text, work_text

if TYPE_CHECKING:
    from runtime.graph.model_record import TensorInfo

    from ..graph import GraphReport

_MAX_ROWS = 20_000


class Row(NamedTuple):
    """One row of the drawing."""

    # The kind of the operator; ``"input"`` and ``"output"`` for the model's inputs and outputs.
    kind: str
    name: str
    function: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    flops: int
    lane: int  # the lane of its dot
    ends: tuple[int, ...]  # the lanes that lead to its dot from above
    begins: tuple[int, ...]  # the lanes that lead down from it
    passes: tuple[int, ...]  # the lanes that pass
    drawing: str  # what the importer drew of it


def describe_graph(graph: GraphReport | None) -> dict[str, Any] | None:
    """Return the contents of the page's section; None without a graph."""
    if graph is None:
        return None
    values = {**graph.values, **{info.name: info for info in (*graph.inputs, *graph.outputs)}}
    for name, form in graph.weights.items():
        shape = form.get("shape")
        if name in values and isinstance(shape, list):
            values[name] = values[name]._replace(shape=tuple(shape), layout="packed")
    rows = list(draw_graph(graph))
    return {
        "signatures": list(signatures_text(graph)),
        "work": work_text(graph),
        "flops": graph.flops,
        "symbol": next(iter(open_extents(graph)), None),
        "nodes": len(graph.nodes),
        "operators": _kinds(graph),
        "lanes": max((lane for row in rows for lane in (row.lane, *row.passes)), default=0) + 1,
        "rows": [
            (*row[:3], _typed(row.reads, values), _typed(row.writes, values), *row[5:])
            for row in rows
        ],
        "folded": list(graph.folded.items()),
    }


def draw_graph(graph: GraphReport) -> Iterator[Row]:
    """Return the rows: inputs, operators in the order of the calls, outputs."""
    named = list(_operations(graph))[:_MAX_ROWS]
    made = {name for *_, writes, _, _ in named for name in writes}
    last: dict[str, int] = {}
    for index, (_, _, _, reads, writes, *_) in enumerate(named):
        last.update(dict.fromkeys((*reads, *writes), index))
    lanes: dict[str, int] = {}
    for index, (kind, name, function, reads, writes, flops, drawing) in enumerate(named):
        runs = [value for value in dict.fromkeys(reads) if value in made and value in lanes]
        ends = tuple(lanes[value] for value in runs)
        for value in runs:
            if last[value] == index:
                del lanes[value]
        passes = tuple(sorted(lanes.values()))
        begins = []
        for value in dict.fromkeys(writes):
            if value not in lanes and last[value] > index:
                lanes[value] = _free(lanes, ends)
                begins.append(lanes[value])
        dots = [*begins, *ends] if not begins or begins[0] in ends else [begins[0]]
        lane = dots[0] if dots else _free(lanes, ())
        found = (lane, ends, tuple(begins), passes, drawing)
        yield Row(kind, name, function, reads, writes, flops, *found)


_Operation = tuple[str, str, str, tuple[str, ...], tuple[str, ...], int, str]


def _operations(graph: GraphReport) -> Iterator[_Operation]:
    for info in graph.inputs:
        yield "input", info.name, "", (), (info.name,), 0, ""
    for node in graph.nodes:
        yield node.op, node.name, *node[2:]
    for info in graph.outputs:
        yield "output", info.name, "", (info.name,), (), 0, ""


def _free(lanes: Mapping[str, int], preferred: Sequence[int]) -> int:
    """Return a lane that no value uses; first the lanes that just ended, from the left."""
    used = set(lanes.values())
    for lane in sorted(preferred):
        if lane not in used:
            return lane
    return next(lane for lane in range(len(used) + 1) if lane not in used)


def _kinds(graph: GraphReport) -> list[tuple[str, int, int]]:
    """Return kind, number and flops; those with the most flops first."""
    flops: dict[str, int] = {}
    for node in graph.nodes:
        flops[node.op] = flops.get(node.op, 0) + node.flops
    rows = [(op, count, flops[op]) for op, count in graph.operators.items()]
    return sorted(rows, key=lambda row: (-row[2], -row[1]))


def _typed(names: Sequence[str], values: Mapping[str, TensorInfo]) -> list[tuple[str, str]]:
    """Return each value with its type: ``("x", "float32[1, 3]")``."""
    found = ((name, values.get(name)) for name in names)
    return [(name, str(info).removeprefix(f"{name}: ") if info else "") for name, info in found]
