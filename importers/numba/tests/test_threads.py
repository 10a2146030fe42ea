"""Parallel loops: the same bits as Numba's for the same number of threads."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import packer
import runtime

SOURCE = """
import numpy as np
from numba import (get_num_threads, get_parallel_chunksize, get_thread_id, njit,
                   parallel_chunksize, prange, set_num_threads)

@njit(parallel=True)
def total(x):
    s = 0.0
    for i in prange(x.shape[0]):
        s += x[i] * 0.1
    return s

@njit(parallel=True)
def chunks(x):
    s = 0.0
    with parallel_chunksize(7):
        for i in prange(x.shape[0]):
            s += x[i] * 0.1
    return s + get_parallel_chunksize()

@njit(parallel=True)
def rows(x):
    out = np.zeros(x.shape[0])
    for i in prange(x.shape[0]):
        t = 0.0
        for j in prange(x.shape[1]):
            t += x[i, j] * 0.1
        out[i] = t
    return out

@njit(parallel=True)
def whole(x):
    return np.sum(np.sin(x) * 0.1 + x.std())

@njit(parallel=True)
def numbers(n):
    places = np.zeros(get_num_threads(), np.int64)
    for i in prange(n):
        places[get_thread_id()] += i
    return places

@njit(parallel=True)
def limited(n):
    before = get_num_threads()
    set_num_threads(n)
    count = 0
    for i in prange(100):
        count += get_num_threads()
    set_num_threads(before)
    return count

@njit
def checked(value):
    if value < 0:
        raise ValueError("a negative number")
    return value

@njit(parallel=True)
def all_checked(x):
    out = np.zeros(x.shape[0], np.int64)
    for i in prange(x.shape[0]):
        out[i] = checked(x[i])
    return out
"""
SIGNATURES = {
    "total": "f8(f8[::1])",
    "chunks": "f8(f8[::1])",
    "rows": "f8[::1](f8[:,::1])",
    "whole": "f8(f8[:,::1])",
    "numbers": "i8[::1](i8)",
    "limited": "i8(i8)",
    "all_checked": "i8[::1](i8[::1])",
}
NAMES = ("total", "chunks", "rows", "whole", "numbers")
COMPARE = """
import sys, numpy as np, runtime, loops
made, drawn = runtime.load(sys.argv[1]), np.random.default_rng(3)
vector, matrix = drawn.random(1001), drawn.random((13, 77))
given = {"total": vector, "chunks": vector, "rows": matrix, "whole": matrix, "numbers": 50}
for name, value in given.items():
    mine, theirs = np.asarray(made[name](value)), np.asarray(getattr(loops, name)(value))
    print(name, mine.tobytes() == theirs.tobytes(), mine.shape == theirs.shape)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file, exported."""
    path = tmp_path_factory.mktemp("loops") / "loops.py"
    path.write_text(SOURCE)
    return packer.export_library(
        packer.from_numba(path, functions=SIGNATURES), path.with_name("made.so")
    )


@pytest.mark.parametrize("threads", [1, 4])
def test_reductions_have_the_bits_of_numba(library: Path, threads: int) -> None:
    """In a process with this number of threads, whatever the machine has."""
    environment = {**os.environ, "NUMBA_NUM_THREADS": str(threads)}
    code = f"import sys; sys.path.insert(0, {str(library.parent)!r})\n{COMPARE}"
    command = [sys.executable, "-c", code, str(library)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{name} True True" for name in NAMES]


def test_functions_set_the_number_of_threads(library: Path) -> None:
    """For the calling thread; a number out of range is an error of the call."""
    made = runtime.load(library)
    assert made["limited"](2) == 200
    assert made["limited"](3) == 300
    with pytest.raises(ValueError, match="The number of threads must be between 1 and 256"):
        made["limited"](0)


def test_an_exception_of_a_kernel_is_raised(library: Path) -> None:
    """Numba prints it and goes on."""
    made = runtime.load(library)
    assert np.asarray(made["all_checked"](np.arange(4))).tolist() == [0, 1, 2, 3]
    for _ in range(3):
        with pytest.raises(ValueError, match="a negative number"):
            made["all_checked"](np.array([1, 2, -3, 4]))
    assert np.asarray(made["all_checked"](np.arange(4))).tolist() == [0, 1, 2, 3]
