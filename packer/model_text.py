"""A model as text: its graph on one line, and its functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.graph.model_record import signature_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runtime.graph.model_record import GraphNode, ModelRecord, TensorInfo

    from .inspect.graph import GraphReport

    Graph = ModelRecord | GraphReport

# The most items shown of a list.
_SHOWN = 12


def signatures_text(graph: Graph) -> Iterator[str]:
    """Return the signature of a model's main function, then of its further functions.

    With several sets of shapes ``main`` chooses among ``main_1`` and the others.
    """
    first = graph.variants[0].function if graph.variants else "main"
    yield _signature("main" if first == "main_1" else first, graph.inputs, graph.outputs)
    for variant in graph.variants[1:]:
        yield _signature(*variant)


def _signature(function: str, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo]) -> str:
    return signature_text(function, _some(inputs), _some(outputs))


def _some(infos: Sequence[TensorInfo]) -> list[str]:
    left = len(infos) - _SHOWN
    more = [f"... {left} more"] if left > 0 else []
    return [*map(str, infos[:_SHOWN]), *more]


def work_text(graph: Graph) -> str:
    """Return the size of a graph: ``"2 operators, 3.89 kFLOP for batch = 1"``."""
    nodes: Sequence[GraphNode] = graph.nodes
    names = open_extents(graph)
    per = f" for {', '.join(f'{name} = 1' for name in names)}" if names else ""
    count = f"{len(nodes):,} operator{'' if len(nodes) == 1 else 's'}"
    return f"{count}, {flops_text(sum(node.flops for node in nodes))}{per}"


def open_extents(graph: Graph) -> list[str]:
    """Return the names of the extents that each call may choose."""
    extents = (extent for info in graph.inputs for extent in info.shape)
    return [*dict.fromkeys(one for one in extents if isinstance(one, str) and one.isidentifier())]


def flops_text(flops: int) -> str:
    """Return a number of floating-point operations: ``"3.64 GFLOP"``."""
    if flops < 1000:
        return f"{flops} FLOP"
    number, units = float(flops), iter(("", "k", "M", "G", "T"))
    unit = next(units)
    while number >= 999.5 and unit != "T":
        number, unit = number / 1000, next(units)
    return f"{number:.3g} {unit}FLOP"
