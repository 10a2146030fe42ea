"""Measure cases side by side: interleaved rounds, and child processes with their peak memory."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

# One measurement: "seconds"; and in bytes "peak" or "growth" of memory, and the size of the output,
# "file".
Sample = dict[str, float]
Command = list[str | Path]


@dataclass(frozen=True)
class Case:
    """Something to measure.

    Attributes
    ----------
    name : str
        The name in the table.
    measure : callable
        Takes one sample.
    package : str, optional
        The package that it needs; if it is not installed, the table says so.
    """

    name: str
    measure: Callable[[], Sample]
    package: str | None = None


@dataclass(frozen=True)
class Row:
    """The samples, one per round; or none, and the reason."""

    name: str
    samples: tuple[Sample, ...]
    absent: str = ""


def interleave(cases: Sequence[Case], rounds: int) -> list[Row]:
    """Take one sample of every case in each round, so that all are measured under the same load.

    The order is rotated in each round, so that the position has no effect. A first round warms the
    caches and is not counted.
    """
    present = [case for case in cases if is_installed(case.package)]
    for case in present:
        case.measure()
    samples: dict[str, list[Sample]] = {case.name: [] for case in cases}
    for round_number in range(rounds):
        for case in present if round_number % 2 else reversed(present):
            samples[case.name].append(case.measure())
    return [_row(case, samples[case.name]) for case in cases]


def is_installed(package: str | None) -> bool:
    """Return True if the package that a case needs is installed; it is not imported."""
    return package is None or find_spec(package) is not None


@dataclass(frozen=True)
class Ended:
    """A process that has ended.

    Attributes
    ----------
    seconds : float
        From its start to its end.
    peak : int
        The peak memory, in bytes, of it and all processes that it started.
    output : str
        Its standard output.
    """

    seconds: float
    peak: int
    output: str

    def sample(self) -> Sample:
        """Return the process as a sample."""
        return {"seconds": self.seconds, "peak": self.peak}


class Launcher:
    """Runs programs and measures them, with the program launch.c.

    Parameters
    ----------
    folder : Path
        The folder for the compiled launch.c.
    """

    def __init__(self, folder: Path) -> None:
        self._program = folder / "launch"
        source = Path(__file__).with_name("launch.c")
        subprocess.run(["gcc", "-O2", "-o", self._program, source], check=True)

    def __call__(self, command: Command) -> Ended:
        """Run a program to its end.

        Raises
        ------
        RuntimeError
            If it did not exit with 0; the measurement is invalid then.
        """
        completed = subprocess.run(
            [self._program, *command], capture_output=True, text=True, check=False
        )
        *lines, report = completed.stdout.splitlines() or [""]
        if not report.endswith(" 0"):
            raise RuntimeError(f"{command[0]} ended with {report!r}: {completed.stderr.strip()}")
        nanoseconds, peak, _status = map(int, report.split())
        return Ended(nanoseconds / 1e9, peak * 1024, "\n".join(lines))


def _row(case: Case, samples: list[Sample]) -> Row:
    absent = "" if is_installed(case.package) else f"not installed: {case.package}"
    return Row(case.name, tuple(samples), absent)
