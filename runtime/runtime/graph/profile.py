"""The time that each operator of a model takes."""

from __future__ import annotations

from typing import NamedTuple


class OperatorTime(NamedTuple):
    """The time of one operator.

    Attributes
    ----------
    name : str
        The node.
    function : str
        The function that it calls.
    seconds : float
        The median of the runs of a model, or the mean of a graph's; of a function that a run calls
        several times, their sum in a run.
    op : str
        The kind of the operator, as ``"Conv"``; "" if it is not known.
    calls : float
        The calls in a run.
    flops : int
        Floating-point operations in a run; 0 if they are not known.
    nbytes : int
        The bytes of its inputs and outputs; 0 if they are not known.
    """

    name: str
    function: str
    seconds: float
    op: str = ""
    calls: float = 1
    flops: int = 0
    nbytes: int = 0

    @property
    def gflops(self) -> float:
        """10^9 floating-point operations a second; 0 if they are not known."""
        return 1e-9 * self.flops / self.seconds if self.seconds > 0 else 0.0

    @property
    def gbytes(self) -> float:
        """10^9 bytes a second, each input and output once; 0 if they are not known."""
        return 1e-9 * self.nbytes / self.seconds if self.seconds > 0 else 0.0


class Profile(tuple[OperatorTime, ...]):
    """The operators of a model in the order in which they run; as text a table, longest first."""

    __slots__ = ()

    @property
    def seconds(self) -> float:
        """The time of all operators together."""
        return sum(row.seconds for row in self)

    @property
    def nbytes(self) -> int:
        """The bytes of the inputs and outputs of all operators."""
        return sum(row.nbytes for row in self)

    def __str__(self) -> str:
        total = self.seconds or 1.0
        columns = [_column("operator", [row.name for row in self], "together", is_text=True)]
        if any(row.op for row in self):
            columns.append(_column("kind", [row.op for row in self], "", is_text=True))
        if any(row.calls != 1 for row in self):
            columns.append(_column("calls", [f"{row.calls:g}" for row in self], ""))
        times = [f"{row.seconds * 1e6:.2f}" for row in self]
        columns.append(_column("us", times, f"{self.seconds * 1e6:.2f}"))
        columns.append(_column("%", [f"{100 * row.seconds / total:.1f}" for row in self], "100.0"))
        if any(row.flops for row in self):
            flops = sum(row.flops for row in self)
            speeds = [_speed(row.gflops) for row in self]
            columns.append(_column("GFLOP/s", speeds, _speed(1e-9 * flops / total)))
        if any(row.nbytes for row in self):
            speeds = [_speed(row.gbytes) for row in self]
            columns.append(_column("GB/s", speeds, _speed(1e-9 * self.nbytes / total)))
        columns.append(_column("function", [row.function for row in self], "", is_text=True))
        longest_first = sorted(range(len(self)), key=lambda index: -self[index].seconds)
        order = (0, *(1 + index for index in longest_first), -1)
        lines = ([column[place] for column in columns] for place in order)
        return "\n".join("  ".join(line).rstrip() for line in lines)


def _speed(gflops: float) -> str:
    """Show a speed; "" if no operations were counted, or too few for a digit."""
    text = f"{gflops:.1f}"
    return "" if text == "0.0" else text


def _column(title: str, rows: list[str], last: str, *, is_text: bool = False) -> list[str]:
    """Return the cells of a column, from its title to its last line; numbers are on its right."""
    cells = [title, *rows, last]
    width = max(map(len, cells))
    return [cell.ljust(width) if is_text else cell.rjust(width) for cell in cells]
