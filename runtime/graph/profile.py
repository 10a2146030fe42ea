"""The time that each operator of a graph takes."""

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
        The mean of its calls.
    """

    name: str
    function: str
    seconds: float


class Profile(tuple[OperatorTime, ...]):
    """The operators of a graph in the order in which they run; as text a table, longest first."""

    __slots__ = ()

    @property
    def seconds(self) -> float:
        """The time of all operators together."""
        return sum(row.seconds for row in self)

    def __str__(self) -> str:
        width = max([len(row.name) for row in self] + [len("operator")])
        total = self.seconds or 1.0
        lines = [f"{'operator':<{width}}  {'us':>10}      %  function"]
        for row in sorted(self, key=lambda row: -row.seconds):
            share = f"{row.seconds * 1e6:10.2f}  {100 * row.seconds / total:5.1f}"
            lines.append(f"{row.name:<{width}}  {share}  {row.function}")
        lines.append(f"{'together':<{width}}  {self.seconds * 1e6:10.2f}  100.0")
        return "\n".join(lines)
