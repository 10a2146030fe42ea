"""time_evaluator: measure a function, in seconds per call."""

from __future__ import annotations

from statistics import fmean, median, stdev
from time import perf_counter
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class BenchmarkResult(NamedTuple):
    """Seconds per call, one number per measurement.

    Attributes
    ----------
    results : tuple of float
        Seconds per call.
    """

    results: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean, in seconds."""
        return fmean(self.results)

    @property
    def median(self) -> float:
        """The median, in seconds."""
        return median(self.results)

    @property
    def min(self) -> float:
        """The least, in seconds."""
        return min(self.results)

    @property
    def max(self) -> float:
        """The greatest, in seconds."""
        return max(self.results)

    @property
    def std(self) -> float:
        """The standard deviation, in seconds; 0 for one measurement."""
        return stdev(self.results) if len(self.results) > 1 else 0.0

    def __str__(self) -> str:
        texts = [
            f"{getattr(self, name) * 1e6:.3f}" for name in ("mean", "median", "min", "max", "std")
        ]
        return "mean {} us, median {} us, min {} us, max {} us, std {} us".format(*texts)


def time_evaluator(
    function: Callable[..., Any], *, number: int, repeat: int, min_repeat_ms: float
) -> Callable[..., BenchmarkResult]:
    """Make ``evaluate(*args)``, which times `function`; see `Module.time_evaluator`."""
    if number < 1 or repeat < 1:
        raise ValueError(f"number and repeat must be at least 1, found {number} and {repeat}")

    def evaluate(*args: Any) -> BenchmarkResult:
        function(*args)  # caches and page faults
        return BenchmarkResult(
            tuple(_measure(function, args, number, min_repeat_ms / 1000) for _ in range(repeat))
        )

    return evaluate


def _measure(
    function: Callable[..., Any], args: tuple[Any, ...], number: int, least: float
) -> float:
    while True:
        start = perf_counter()
        for _ in range(number):
            function(*args)
        elapsed = perf_counter() - start
        if elapsed >= least:
            return elapsed / number
        number *= 2
