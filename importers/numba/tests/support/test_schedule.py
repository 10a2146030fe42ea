"""schedule.c and parallel.c: the division of work is Numba's."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import sys
from ctypes import POINTER, c_int64, c_uint64, c_void_p
from pathlib import Path
from typing import Any

import pytest
from numba.np.ufunc import workqueue

import runtime

from .both import compile_support, ours

VECTOR = POINTER(c_int64)


def theirs(name: str, result: Any, *arguments: Any) -> Any:
    """The function of a threading layer of Numba; all layers share the division."""
    return ctypes.CFUNCTYPE(result, *arguments)(getattr(workqueue, name))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Our functions."""
    folder = tmp_path_factory.mktemp("parallel")
    files = ("schedule.c", "parallel.c", "pending.c", "array.c", "nrt.c", "calls.c")
    return compile_support(folder, *files)


def ranges(drawn: random.Random) -> tuple[list[int], list[int]]:
    """First and last iterations, also of empty and of long ranges."""
    ndim = drawn.choice((1, 1, 2, 2, 3, 4))
    starts = [drawn.choice((0, 0, -5, 7)) for _ in range(ndim)]
    lengths = [drawn.choice((0, 1, 2, 3, 5, 8, 13, 100, 1000, 54321)) for _ in range(ndim)]
    if ndim == 1 and drawn.random() < 0.2:
        lengths = [drawn.randrange(2**40)]
    return starts, [start + length - 1 for start, length in zip(starts, lengths, strict=True)]


@pytest.mark.parametrize("name", ["do_scheduling_signed", "do_scheduling_unsigned"])
def test_the_parts_are_those_of_numba(library: ctypes.CDLL, name: str) -> None:
    """4,000 ranges of 1 to 4 dimensions for 1 to 70 parts."""
    types = (c_uint64, VECTOR, VECTOR, c_uint64, VECTOR, c_int64)
    mine, other = ours(library, name, None, *types), theirs(name, None, *types)
    drawn = random.Random(6)
    for _ in range(4000):
        starts, ends = ranges(drawn)
        ndim, parts = len(starts), drawn.choice((1, 2, 3, 4, 7, 8, 16, 70))
        results = []
        for function in (mine, other):
            out = (c_int64 * (2 * ndim * parts))()
            vectors = ((c_int64 * ndim)(*starts), (c_int64 * ndim)(*ends))
            function(ndim, *vectors, parts, out, 0)
            results.append(list(out))
        assert results[0] == results[1], (starts, ends, parts)


def test_the_number_of_chunks_is_that_of_numba(library: ctypes.CDLL) -> None:
    """With each size of a chunk; the size is the thread's."""
    drawn = random.Random(7)
    types = (c_uint64, c_uint64, VECTOR, VECTOR)
    for size in (0, 1, 3, 10, 1000):
        for find in (lambda *a: ours(library, *a), theirs):
            find("set_parallel_chunksize", c_uint64, c_uint64)(size)
            assert find("get_parallel_chunksize", c_uint64)() == size
        mine, other = (
            find("get_sched_size", c_uint64, *types)
            for find in (lambda *a: ours(library, *a), theirs)
        )
        for _ in range(200):
            starts, ends = ranges(drawn)
            vectors = ((c_int64 * len(starts))(*starts), (c_int64 * len(ends))(*ends))
            threads = drawn.choice((1, 2, 5, 16))
            assert mine(threads, len(starts), *vectors) == other(threads, len(starts), *vectors)
    for find in (lambda *a: ours(library, *a), theirs):
        find("set_parallel_chunksize", c_uint64, c_uint64)(0)


KERNEL = ctypes.CFUNCTYPE(None, POINTER(c_void_p), VECTOR, VECTOR, c_void_p)


@pytest.mark.parametrize(("items", "threads"), [(10, 4), (3, 8), (0, 4), (1000, 7), (5, 1)])
def test_every_item_runs_once(library: ctypes.CDLL, items: int, threads: int) -> None:
    """Without a loader too, part after part; each knows its number and the number of threads."""
    seen: list[tuple[int, int, int, int, int]] = []
    number = ours(library, "get_thread_id", c_int64)
    count = ours(library, "get_num_threads", c_int64)

    def run(args: Any, dims: Any, steps: Any, data: Any) -> None:
        first = ((args[0] or 0) - 1000) // steps[0]
        seen.append((number(), count(), first, dims[0], dims[1]))

    types = (KERNEL, POINTER(c_void_p), VECTOR, VECTOR, c_void_p, c_int64, c_int64, c_int64)
    loop = ours(library, "numba_parallel_for", None, *types)
    kernel = KERNEL(run)
    loop(
        kernel,
        (c_void_p * 1)(1000),
        (c_int64 * 2)(items, 77),
        (c_int64 * 1)(24),
        None,
        1,
        1,
        threads,
    )
    assert [first for _, _, first, _, _ in seen] == [
        sum(row[3] for row in seen[:i]) for i in range(len(seen))
    ]
    assert sum(row[3] for row in seen) == items
    assert all(row[1] == threads and row[4] == 77 for row in seen)
    assert [row[0] for row in seen] == list(range(len(seen)))
    assert max((row[3] for row in seen), default=0) - min((row[3] for row in seen), default=0) <= 1
    assert number() == 0


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"NUMBA_NUM_THREADS": "3", "OMP_NUM_THREADS": "5"}, 3),
        ({"TVM_NUM_THREADS": "4", "OMP_NUM_THREADS": "5"}, 4),
        ({"OMP_NUM_THREADS": "5,2"}, 5),
        ({"NUMBA_NUM_THREADS": "100000"}, 256),
        ({"NUMBA_NUM_THREADS": "none"}, len(os.sched_getaffinity(0))),
    ],
)
def test_the_number_of_threads(
    library: ctypes.CDLL, variables: dict[str, str], expected: int
) -> None:
    """Of the process, until the thread sets its own."""
    names = ("NUMBA_NUM_THREADS", "TVM_NUM_THREADS", "OMP_NUM_THREADS")
    environment = {name: text for name, text in os.environ.items() if name not in names}
    code = (
        "import ctypes, sys; made = ctypes.CDLL(sys.argv[1]); print(made.get_num_threads());"
        "made.set_num_threads(2); print(made.get_num_threads())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, library._name], env={**environment, **variables},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [str(expected), "2"]


LOOPS = Path(__file__).parent / "loops_probe.c"


@pytest.fixture(scope="module")
def loops(tmp_path_factory: pytest.TempPathFactory) -> runtime.Module:
    """A library that the loader gives its threads to."""
    folder = tmp_path_factory.mktemp("loops")
    (folder / "loops_probe.c").write_text(LOOPS.read_text())
    files = (
        "schedule.c",
        "parallel.c",
        "pending.c",
        "array.c",
        "nrt.c",
        "calls.c",
        "loops_probe.c",
    )
    return runtime.load(compile_support(folder, *files)._name)


def test_loops_on_the_threads_of_the_loader(loops: runtime.Module) -> None:
    """Sums of parts, loops in loops, and an exception of one part: checked in C."""
    assert loops["sum"](1000, 4) == 499500
    assert loops["sum"](3, 8) == 3
    assert loops["nested"](20, 3) == 3 * 190
    with pytest.raises(ValueError, match=r"negative; raised by item \(geo.py:7\)"):
        loops["fail"](10, 4)
    assert loops["sum"](10, 4) == 45
