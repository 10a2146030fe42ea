"""Table: rows of samples as aligned text, and as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from typing import Any

from measure import Row, Sample

_UNITS = {"ms": 1e3, "us": 1e6, "ns": 1e9}
_MIB = 1 << 20


@dataclass(frozen=True)
class Table:
    """Rows that were measured in the same rounds.

    Attributes
    ----------
    title : str
        The subject of the table.
    rows : list of Row
        The first is the reference, or the first of each group.
    unit : str
        ``"ms"``, ``"us"`` or ``"ns"``.
    memory : str
        The columns in MiB, a subset of ``"peak growth file"``.
    notes : tuple of str
        Printed after the rows, one line each.
    group : int
        The number of rows that have a reference; 0 for all rows.
    """

    title: str
    rows: list[Row]
    unit: str
    memory: str = ""
    notes: tuple[str, ...] = ()
    group: int = 0

    def text(self) -> str:
        """The table as aligned lines."""
        head = [self.unit, "+-", "over", "ratio"] + [f"{name} MiB" for name in self.memory.split()]
        lines = [(row.name, self._cells(row)) for row in self.rows]
        first = max(len(name) for name, _ in lines)
        rounds = max(len(row.samples) for row in self.rows)
        return "\n".join(
            [
                f"{self.title} ({rounds} rounds)",
                f"  {'':{first}}{_aligned(head)}",
                *(f"  {name:{first}}{cells}" for name, cells in lines),
                *(f"  {note}" for note in self.notes),
            ]
        )

    def json(self) -> dict[str, Any]:
        """The table with all samples, in seconds and bytes."""
        return asdict(self)

    def _cells(self, row: Row) -> str:
        if row.absent:
            return f"  {row.absent}"
        times = [sample["seconds"] for sample in row.samples]
        cells = [self._time(median(times)), self._time(_spread(times)), *self._compared(row)]
        sizes = [median(s[name] for s in row.samples) for name in self.memory.split()]
        return _aligned([*cells, *(f"{size / _MIB:.2f}" for size in sizes)])

    def _compared(self, row: Row) -> list[str]:
        """The difference to, and the ratio with, the reference in the same round."""
        if row is self._reference(row):
            return ["-", "1.00"]
        over = self._paired(row, lambda ours, reference: ours - reference)
        ratio = self._paired(row, lambda ours, reference: ours / reference)
        return [self._time(over), f"{ratio:.2f}"]

    def _reference(self, row: Row) -> Row:
        index = self.rows.index(row)
        return self.rows[index - index % (self.group or len(self.rows))]

    def _paired(self, row: Row, compare: Callable[[float, float], float]) -> float:
        pairs: list[tuple[Sample, Sample]]
        pairs = list(zip(row.samples, self._reference(row).samples, strict=True))
        return median(compare(ours["seconds"], other["seconds"]) for ours, other in pairs)

    def _time(self, seconds: float) -> str:
        return f"{seconds * _UNITS[self.unit]:.{1 if self.unit == 'ns' else 2}f}"


def _spread(values: list[float]) -> float:
    """Half of the range of the middle half of the samples."""
    low, _, high = quantiles(values, n=4)
    return (high - low) / 2


def _aligned(cells: list[str]) -> str:
    return "".join(f"{cell:>12}" for cell in cells)
