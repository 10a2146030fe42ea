"""Functions for the subject numba: exported by dso-packer, and timed beside Numba's JIT.

numba_peer.py FOLDER: writes FOLDER/benchmarks.so and calls.so, and prints one line of JSON: the
seconds of the calls of both, in pairs, for each benchmark. It runs in .venv-numba.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numba
import numpy as np
from numba import types
from numba.typed import Dict

import packer
import runtime

PAIRS = 30
# At least these seconds for one sample, which is the mean of as many calls.
SAMPLE_SECONDS = 0.01


@numba.njit
def distances(points):
    """Between all points: allocates the result."""
    count = points.shape[0]
    made = np.empty((count, count))
    for i in range(count):
        for j in range(count):
            total = 0.0
            for k in range(points.shape[1]):
                total += (points[i, k] - points[j, k]) ** 2
            made[i, j] = np.sqrt(total)
    return made


@numba.njit
def mandelbrot(size, limit):
    """The steps of each point until it leaves the circle."""
    steps = np.zeros((size, size), np.int64)
    for i in range(size):
        for j in range(size):
            c = complex(3.0 * j / size - 2.0, 2.0 * i / size - 1.0)
            z = 0j
            for n in range(limit):
                z = z * z + c
                if z.real * z.real + z.imag * z.imag > 4.0:
                    steps[i, j] = n
                    break
    return steps


@numba.njit(fastmath=True)
def moments(x):
    """The first four, in one pass that is vectorised."""
    a = b = c = d = 0.0
    for value in x:
        a += value
        b += value * value
        c += value * value * value
        d += value * value * value * value
    return a, b, c, d


@numba.njit
def count_words(numbers):
    """By a typed dictionary."""
    counts = Dict.empty(key_type=types.int64, value_type=types.int64)
    for number in numbers:
        if number in counts:
            counts[number] += 1
        else:
            counts[number] = 1
    return len(counts)


@numba.njit
def sort_rows(rows):
    """A copy, each row sorted."""
    made = rows.copy()
    for i in range(rows.shape[0]):
        made[i] = np.sort(rows[i])
    return made


@numba.njit
def add(a, b):
    """Nearly nothing."""
    return a + b


@numba.njit
def pair(x, y):
    """Likewise, with arrays."""
    y[0] = x[0]


SIGNATURES = {
    "distances": "float64[:,::1](float64[:,::1])",
    "mandelbrot": "int64[:,::1](int64, int64)",
    "moments": "UniTuple(float64, 4)(float64[::1])",
    "count_words": "int64(int64[::1])",
    "sort_rows": "float64[:,::1](float64[:,::1])",
}
CALLS = {"add": "int64(int64, int64)", "pair": "void(float32[::1], float32[::1])"}


def arguments() -> dict[str, tuple[Any, ...]]:
    """Return the arguments of each benchmark; a call takes some milliseconds."""
    drawn = np.random.default_rng(1)
    return {
        "distances": (drawn.random((500, 3)),),
        "mandelbrot": (80, 120),
        "moments": (drawn.random(500_000),),
        "count_words": (drawn.integers(0, 500, 20_000),),
        "sort_rows": (drawn.random((40, 1000)),),
    }


def main(folder: Path) -> None:
    """Export, check that both give the same, and time them in turn."""
    functions = {name: globals()[name] for name in SIGNATURES}
    for name, function in functions.items():
        function.compile(SIGNATURES[name])
    module = packer.NumbaModule(functions, signatures=SIGNATURES)
    path = packer.export_library(module, folder / "benchmarks.so", build=packer.Build(cpu="native"))
    plain = packer.NumbaModule({name: globals()[name] for name in CALLS}, signatures=CALLS)
    packer.export_library(plain, folder / "calls.so")
    library = runtime.load(path)
    samples = {}
    for name, given in arguments().items():
        ours, theirs = library[name], functions[name]
        found, expected = np.asarray(ours(*given)), np.asarray(theirs(*given))
        assert found.tobytes() == expected.tobytes(), name
        samples[name] = timed_pairs(theirs, ours, given)
    print(json.dumps(samples))


def timed_pairs(
    first: Callable[..., object], second: Callable[..., object], given: tuple[Any, ...]
) -> list[tuple[float, float]]:
    """Return the seconds of a call of each, in pairs; which is called first alternates."""
    count = 1
    while timed(first, given, count) * count < SAMPLE_SECONDS:
        count *= 2
    pairs = []
    for number in range(PAIRS):
        if number % 2:
            one = timed(first, given, count)
            pairs.append((one, timed(second, given, count)))
        else:
            two = timed(second, given, count)
            pairs.append((timed(first, given, count), two))
    return pairs


def timed(function: Callable[..., object], given: tuple[Any, ...], count: int) -> float:
    """Return the seconds of one call."""
    start = perf_counter()
    for _ in range(count):
        function(*given)
    return (perf_counter() - start) / count


if __name__ == "__main__":
    main(Path(sys.argv[1]))
