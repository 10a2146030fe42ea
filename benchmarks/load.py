"""Load: from a file to its modules, in a process whose imports are done."""

from __future__ import annotations

import sys
from pathlib import Path
from shutil import copyfile

from library import MIB, build_library, write_payload
from measure import Case, Launcher, Sample, interleave
from table import Table

ROUNDS = 15
# Title, and the payload's size.
SIZES = {"no blob": 0, "a blob of 1 MiB": MIB, "a blob of 64 MiB": 64 * MIB}

# A fresh process each time, because a library that was loaded once leaves traces. It loads the
# libraries argv[1:-1] first, so that neither imports nor first uses are counted, and then argv[-1].
LOAD = """
import sys
from time import perf_counter_ns
from {loader}
def resident():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Rss:"))
warm = [load(path) for path in sys.argv[1:-1]]
resident()
before = resident()
start = perf_counter_ns()
loaded = load(sys.argv[-1])
took = perf_counter_ns() - start
print(took, resident() - before)
"""
DLOPEN = "_ctypes import dlopen as load"
RUNTIME = "runtime import load"
TVM_FFI = "tvm_ffi import load_module as load"
TVM = "tvm.runtime import load_module as load"


def tables(folder: Path, launch: Launcher) -> list[Table]:
    """Measure the first load of a file in its process."""
    warm = [
        build_library(folder / "warm.so"),
        build_library(folder / "warm_tree.so", payload=write_payload(folder, MIB)),
    ]
    return [_table(title, nbytes, warm, folder, launch) for title, nbytes in SIZES.items()]


def first_load(launch: Launcher, loader: str, library: Path, warm: list[Path]) -> Sample:
    """Measure the first load of a library, in a process that has loaded others."""
    code = LOAD.format(loader=loader)
    took, growth = launch([sys.executable, "-I", "-c", code, *warm, library]).output.split()
    return {"seconds": int(took) / 1e9, "growth": int(growth) * 1024}


def _table(title: str, nbytes: int, warm: list[Path], folder: Path, launch: Launcher) -> Table:
    payload = write_payload(folder, nbytes) if nbytes else None
    library = build_library(folder / f"load_{nbytes}.so", payload=payload)

    def load_copy(loader: str) -> Sample:
        """Load a separate copy."""
        path = folder / f"load_{nbytes}_{loader.split()[0]}.so"
        if not path.exists():
            copyfile(library, path)
        return first_load(launch, loader, path, warm)

    cases = [
        Case("dlopen (reference)", lambda: load_copy(DLOPEN)),
        Case("runtime.load", lambda: load_copy(RUNTIME)),
    ]
    notes = ["aim: at most 5 times dlopen, and 1 MiB"]
    if payload is None:
        cases.append(Case("tvm_ffi.load_module", lambda: load_copy(TVM_FFI), "tvm_ffi"))
    rows = interleave(cases, ROUNDS)
    return Table(f"load: {title}", rows, "us", "growth", tuple(notes))
