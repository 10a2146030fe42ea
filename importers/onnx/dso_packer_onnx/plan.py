"""The memory of a graph's values: offsets in one storage, by when each value is alive.

A value is alive from the operator that writes it to the last one that reads it; values that are
never alive together share memory. With a symbolic batch the plan is that of one entry, and a run
multiplies it: a second storage grows with the batch. A view has the memory of its source.

Outputs of the graph have separate memory, since a caller keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from .dtypes import element_bits
from .operator import elements, stored_shape

if TYPE_CHECKING:
    import onnx_ir as ir

    from .operator import Operator

ALIGNMENT = 64


class Place(NamedTuple):
    """Where a value is: in the storage that grows with the batch or not, and its offset there.

    `offset` is in bytes, a multiple of 64; if `is_scaled` it is that of a batch of 1.
    """

    offset: int
    is_scaled: bool = False


class Plan(NamedTuple):
    """The memory of one call."""

    nbytes: int  # the size of the storage for values and workspaces of fixed size
    batch_nbytes: int  # the size of the storage that grows with the batch, for each entry of it
    # Every value that is neither an input, a weight, an output nor a view.
    places: dict[ir.Value, Place]
    workspaces: dict[int, Place]  # by the index of the operator
    sources: dict[ir.Value, ir.Value]  # for each view the value whose memory it has
    # The last operator that uses each value, or a view of it; its writer, if none reads it.
    last_uses: dict[ir.Value, int]

    def source(self, value: ir.Value) -> ir.Value:
        """Return the value whose memory a value has: its own, unless it is a view."""
        return self.sources.get(value, value)


class Span(NamedTuple):
    """A number of bytes that are needed from one step to another, both included."""

    first: int
    last: int
    nbytes: int


def plan_memory(operators: Sequence[Operator], outputs: Sequence[ir.Value]) -> Plan:
    """Place every value that operators write.

    Parameters
    ----------
    operators : sequence of Operator
        In the order of the calls. One without code makes a view of its input.
    outputs : sequence of ir.Value
        The outputs of the graph, which get no place.

    Returns
    -------
    Plan
        Values that are alive at the same time do not overlap.
    """
    sources = _sources(operators)
    kept = {sources.get(value, value) for value in outputs}
    first: dict[ir.Value, int] = {}
    last: dict[ir.Value, int] = {}
    for step, operator in enumerate(operators):
        for value in (*operator.inputs, *operator.outputs):
            last[sources.get(value, value)] = step
        for value in operator.outputs:
            first.setdefault(sources.get(value, value), step)
    written = [value for operator in operators if operator.code for value in operator.outputs]
    values = [value for value in written if value not in kept]
    spans: dict[ir.Value | int, Span] = {
        value: Span(first[value], last[value], nbytes_of(value)) for value in values
    }
    workspaces = [step for step, operator in enumerate(operators) if operator.workspace]
    spans |= {step: Span(step, step, operators[step].workspace) for step in workspaces}
    scaled: set[ir.Value | int] = {value for value in values if is_scaled(value)}
    scaled |= {step for step in workspaces if operators[step].takes_batch}
    placed: dict[ir.Value | int, Place] = {}
    sizes = []
    for kind in (False, True):
        keys = [key for key in spans if (key in scaled) == kind]
        offsets, size = pack_spans([spans[key] for key in keys])
        placed |= {key: Place(offset, kind) for key, offset in zip(keys, offsets, strict=True)}
        sizes.append(size)
    places = {value: placed[value] for value in values}
    nbytes, batch_nbytes = sizes
    return Plan(
        nbytes, batch_nbytes, places, {step: placed[step] for step in workspaces}, sources, last
    )


def pack_spans(spans: Sequence[Span]) -> tuple[list[int], int]:
    """Give each span an offset, the largest first, at the lowest place that is free.

    Returns
    -------
    tuple of (list of int, int)
        The offset of each span, a multiple of 64, and the size that all need together.
    """
    order = sorted(range(len(spans)), key=lambda i: (-spans[i].nbytes, spans[i].first))
    offsets = [0] * len(spans)
    taken: list[tuple[int, int, Span]] = []  # offset, end: sorted by the offset
    for index in order:
        span, at = spans[index], 0
        size = _aligned(span.nbytes)
        for offset, end, other in taken:
            if other.last < span.first or other.first > span.last:
                continue
            if offset - at >= size:
                break
            at = max(at, end)
        offsets[index] = at
        taken.append((at, at + size, span))
        taken.sort(key=lambda place: place[0])
    return offsets, max((end for _, end, _ in taken), default=0)


def nbytes_of(value: ir.Value) -> int:
    """Return the bytes of a value in memory, for a batch of 1 if it has a symbolic extent."""
    return -(-elements(stored_shape(value)) * element_bits(value) // 8)


def is_scaled(value: ir.Value) -> bool:
    """Return True if a value has a symbolic extent."""
    return any(isinstance(extent, str) for extent in stored_shape(value))


def _sources(operators: Sequence[Operator]) -> dict[ir.Value, ir.Value]:
    sources: dict[ir.Value, ir.Value] = {}
    for operator in operators:
        if not operator.code:
            (value,), (view,) = operator.inputs, operator.outputs
            sources[view] = sources.get(value, value)
    return sources


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
