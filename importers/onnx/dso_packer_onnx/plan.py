"""The memory of a graph's values: offsets in storages, by when each value is alive.

A value is alive from the operator that writes it to the last one that reads it; values that are
never alive together share memory. Values with open extents have a separate storage, whose offsets
each call calculates: if all sizes are multiples of one expression, from the offsets of its
multiples; else values share slots, and a slot is as large as its largest value. A view has the
memory of its source.

Outputs of the graph have separate memory, since a caller keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from .dtypes import element_bits
from .extent import Extent, expression_of, in_c, product, symbols_of, value_at, written
from .operator import stored_shape

if TYPE_CHECKING:
    import onnx_ir as ir

    from .operator import Operator

ALIGNMENT = 64


_SAMPLE = 64  # an open extent, where sizes are compared


class Place(NamedTuple):
    """Where a value is: in the storage of open extents or not, and its offset there in bytes.

    `offset` is a multiple of 64; if `is_open` an expression of C.
    """

    offset: int | str
    is_open: bool = False
    epoch: int = (
        0  # the open storage: the first one, or the one after so many operators that define
    )


class Plan(NamedTuple):
    """The memory of one call."""

    nbytes: int  # the size of the storage for values and workspaces of fixed size
    open_nbytes: str  # the size of the storage for the others, as an expression of C; "" for none
    # Every value that is neither an input, a weight, an output nor a view.
    places: dict[ir.Value, Place]
    workspaces: dict[int, Place]  # by the index of the operator
    sources: dict[ir.Value, ir.Value]  # for each view the value whose memory it has
    # The last operator that uses each value, or a view of it; its writer, if none reads it.
    last_uses: dict[ir.Value, int]
    # The sizes of the storages for values whose sizes are known after an operator that defines
    # symbols, by epoch.
    born_nbytes: Mapping[int, str] = {}

    def source(self, value: ir.Value) -> ir.Value:
        """Return the value whose memory a value has: its own, unless it is a view."""
        return self.sources.get(value, value)


class Span(NamedTuple):
    """A number of bytes that are needed from one step to another, both included."""

    first: int
    last: int
    nbytes: Extent


def plan_memory(
    operators: Sequence[Operator], outputs: Sequence[ir.Value], named: Mapping[str, Extent]
) -> Plan:
    """Place every value that operators write.

    Parameters
    ----------
    operators : sequence of Operator
        In the order of the calls. One without code makes a view of its input.
    outputs : sequence of ir.Value
        The outputs of the graph, which get no place.
    named : mapping of str to int or str
        The expressions of extents that have names.

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
    fixed = {key: span for key, span in spans.items() if isinstance(span.nbytes, int)}
    offsets, nbytes = pack_spans([*fixed.values()])
    placed = {key: Place(offset) for key, offset in zip(fixed, offsets, strict=True)}
    epochs = epochs_of(operators, named)
    sizes = {0: ""}
    for epoch in sorted({0, *epochs.values()}):
        others = {
            key: span
            for key, span in spans.items()
            if key not in fixed and epoch_of([span.nbytes], epochs) == epoch
        }
        if others:
            codes, sizes[epoch] = _place_open([*others.values()], named)
            pairs = zip(others, codes, strict=True)
            placed |= {key: Place(code, is_open=True, epoch=epoch) for key, code in pairs}
    open_nbytes = sizes.pop(0)
    places = {value: placed[value] for value in values}
    of_steps = {step: placed[step] for step in workspaces}
    return Plan(nbytes, open_nbytes, places, of_steps, sources, last, sizes)


def epochs_of(operators: Sequence[Operator], named: Mapping[str, Extent]) -> dict[str, int]:
    """Return for each symbol that an operator defines how many such operators precede its value.

    Names of extents that have such a symbol are among them.
    """
    defining = [operator for operator in operators if operator.defines]
    epochs = {name: i for i, one in enumerate(defining, 1) for name in one.defines}
    for name, extent in named.items():
        epoch = epoch_of([extent], epochs)
        if epoch:
            epochs[name] = epoch
    return epochs


def epoch_of(extents: Iterable[Extent], epochs: Mapping[str, int]) -> int:
    """Return the epoch in which extents are known; 0 if the inputs' shapes decide them."""
    return max((epochs.get(symbol, 0) for symbol in symbols_of(extents)), default=0)


def _place_open(spans: Sequence[Span], named: Mapping[str, Extent]) -> tuple[list[str], str]:
    """Return the offset of each span of an open size, and what all need: expressions of C."""
    units = [_unit(span.nbytes) for span in spans]
    if len({unit for _, unit in units}) == 1:
        unit = units[0][1]
        packed = [span._replace(nbytes=n) for span, (n, _) in zip(spans, units, strict=True)]
        offsets, whole = pack_spans(packed)
        return [in_c(product((offset, unit))) for offset in offsets], in_c(product((whole, unit)))
    return _place_in_slots(spans, named)


def _unit(size: Extent) -> tuple[int, Extent]:
    """Return a size as a number times an expression without a number."""
    number, rest = expression_of(size).as_coeff_Mul()
    if not number.is_Integer:
        return 1, size
    return int(number), written(rest)


class _Slot(NamedTuple):
    """Memory for values one after the other."""

    last: int  # the step until which it is used
    sizes: tuple[Extent, ...]
    most: int  # the greatest of the sizes at the sample


def _sample_of(spans: Sequence[Span], named: Mapping[str, Extent]) -> dict[str, int]:
    """Return a value for each open extent and for each name."""
    symbols = symbols_of((*(span.nbytes for span in spans), *named.values()))
    sample = dict.fromkeys(symbols, _SAMPLE)
    return sample | {name: value_at(extent, sample) or 0 for name, extent in named.items()}


def _place_in_slots(spans: Sequence[Span], named: Mapping[str, Extent]) -> tuple[list[str], str]:
    sample = _sample_of(spans, named)
    slots: list[_Slot] = []
    chosen = [0] * len(spans)
    for index in sorted(range(len(spans)), key=lambda i: (spans[i].first, -spans[i].last)):
        span = spans[index]
        size = value_at(span.nbytes, sample) or 0
        free = [i for i, slot in enumerate(slots) if slot.last < span.first]
        best = min(free, key=lambda i: abs(slots[i].most - size), default=None)
        if best is None:
            best = len(slots)
            slots.append(_Slot(span.last, (), 0))
        chosen[index] = best
        sizes = dict.fromkeys((*slots[best].sizes, span.nbytes))
        slots[best] = _Slot(span.last, tuple(sizes), max(slots[best].most, size))
    ends = ["0"]
    for slot in slots:
        whole = ""
        for one in map(in_c, slot.sizes):
            whole = f"n_max({whole}, {one})" if whole else one
        ends.append(f"{ends[-1]} + n_up({whole})" if ends[-1] != "0" else f"n_up({whole})")
    return [ends[slot] for slot in chosen], ends[-1] if slots else ""


def pack_spans(spans: Sequence[Span]) -> tuple[list[int], int]:
    """Give each span an offset, the largest first, at the lowest place that is free.

    Returns
    -------
    tuple of (list of int, int)
        The offset of each span, a multiple of 64, and the size that all need together.
    """
    numbers = [span.nbytes if isinstance(span.nbytes, int) else 0 for span in spans]
    order = sorted(range(len(spans)), key=lambda i: (-numbers[i], spans[i].first))
    offsets = [0] * len(spans)
    taken: list[tuple[int, int, Span]] = []  # offset, end: sorted by the offset
    for index in order:
        span, at = spans[index], 0
        size = _aligned(numbers[index])
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


def nbytes_of(value: ir.Value) -> Extent:
    """Return the bytes of a value in memory."""
    shape, bits = stored_shape(value), element_bits(value)
    if bits % 8 == 0:
        return product((*shape, bits // 8))
    whole = product((*shape, bits))
    return -(-whole // 8) if isinstance(whole, int) else written((expression_of(whole) + 7) // 8)


def is_open(value: ir.Value) -> bool:
    """Return True if a value has an open extent."""
    return any(isinstance(extent, str) for extent in stored_shape(value))


def _sources(operators: Sequence[Operator]) -> dict[ir.Value, ir.Value]:
    sources: dict[ir.Value, ir.Value] = {}
    for operator in operators:
        if not operator.code and not operator.flow:
            (value,), (view,) = operator.inputs, operator.outputs
            sources[view] = sources.get(value, value)
    return sources


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNMENT) * ALIGNMENT
