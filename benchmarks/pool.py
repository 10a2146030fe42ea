"""Parallel launches on two threads, with our thread pool and with TVM's.

A pause before each sample lets the workers of the previous one go to sleep: TVM's workers spin for
milliseconds.
"""

from __future__ import annotations

import ctypes
import os
import time
from importlib.util import find_spec
from pathlib import Path

from measure import Case, Launcher, Sample, interleave
from table import Table

import packer
import runtime

ROUNDS = 15
THREADS = 2
MEASURE = (
    "int64_t(int64_t kind, int64_t rounds, int64_t pause, int64_t launch_at, int64_t barrier_at)"
)
# Title, task of pool.c, launches in a sample, and the pause between two, in us.
KINDS = (
    ("an empty task", 0, 5000, 0),
    ("a task that waits at a barrier", 1, 5000, 0),
    ("2 x 50 us of work", 2, 100, 0),
    ("2 x 50 us of work, 5 ms after the last", 2, 20, 5000),
)


def tables(folder: Path, launch: Launcher) -> list[Table]:
    """Measure launches; the first row of each table is ours."""
    del launch  # the benchmark measures no process
    os.environ["TVM_NUM_THREADS"] = str(THREADS)
    source = packer.CSourceModule(
        Path(__file__).with_name("pool.c"), functions={"measure": MEASURE}
    )
    library = runtime.load(packer.export_library(source, folder / "pool.so"))
    return [_table(library, *kind) for kind in KINDS]


def _table(library: runtime.Module, title: str, kind: int, rounds: int, pause: int) -> Table:
    def sample(launch_at: int, barrier_at: int) -> Sample:
        time.sleep(0.05)
        took = library["measure"](kind, rounds, pause, launch_at, barrier_at)
        if took < 0:
            raise RuntimeError(f"{title}: the launch failed")
        return {"seconds": took / 1e9 / rounds}

    theirs = _tvm_addresses() or (0, 0)
    cases = [
        Case("dso-packer (reference)", lambda: sample(0, 0)),
        Case("tvm", lambda: sample(*theirs), "tvm"),
    ]
    notes = ["aim: tvm at least half as long as the reference, or the reference at most 5 us"]
    return Table(
        f"parallel launch on {THREADS} threads: {title}",
        interleave(cases, ROUNDS), "us", notes=tuple(notes if kind == 0 else ()),
    )  # fmt: skip


def _tvm_addresses() -> tuple[int, int] | None:
    """TVMBackendParallelLaunch and TVMBackendParallelBarrier of an installed TVM."""
    tvm, ffi = find_spec("tvm"), find_spec("tvm_ffi")
    if tvm is None or tvm.origin is None or ffi is None or ffi.origin is None:
        return None
    ctypes.CDLL(str(Path(ffi.origin).parent / "lib" / "libtvm_ffi.so"))
    library = ctypes.CDLL(str(Path(tvm.origin).parent / "lib" / "libtvm_runtime.so"))
    names = ("TVMBackendParallelLaunch", "TVMBackendParallelBarrier")
    launch, barrier = (ctypes.cast(library[name], ctypes.c_void_p).value or 0 for name in names)
    return launch, barrier
