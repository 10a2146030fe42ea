"""numba: functions that Numba compiled, in a library: a fresh process, run time, and a call."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import peers
from call import less, timed
from library import build_library
from measure import Case, Launcher, Row, Sample, interleave, is_installed
from peers import Call
from table import Table

import runtime

ROUNDS = 21
NUMBA_PYTHON = Path(__file__).parents[1] / ".venv-numba/bin/python"

# Programs of fresh processes: argv is the library. All call a function of two integers.
RUNTIME = "import sys, runtime; runtime.load(sys.argv[1])['add'](40, 2)"
NUMBA = """
import sys
sys.path.insert(0, sys.argv[1])
import cached
cached.add(40, 2)
"""
CACHED = """
from numba import njit


@njit("int64(int64, int64)", cache=True)
def add(a, b):
    return a + b
"""
ARGUMENTS = {
    "add": {"a": 1_234_567, "b": 7_654_321},
    "pair": {"x": np.ones(1024, np.float32), "y": np.zeros(1024, np.float32)},
}
TITLES = {
    "add": "numba: call f(int, int) -> int",
    "pair": "numba: call f(ndarray, ndarray)",
}


def tables(folder: Path, launch: Launcher) -> list[Table]:
    """Export in an environment with Numba, and measure."""
    python = os.environ.get("DSO_PACKER_NUMBA_PYTHON") or (
        sys.executable if is_installed("numba") else str(NUMBA_PYTHON)
    )
    if not Path(python).exists():
        row = Row("Numba (reference)", (), "not found: `make test-numba` installs it")
        return [Table("numba: a fresh process", [row], "ms")]
    own = folder / "numba"
    own.mkdir()
    script = Path(__file__).with_name("numba_peer.py")
    made = subprocess.run([python, script, own], check=True, capture_output=True, text=True)
    (own / "cached.py").write_text(CACHED)
    declared = build_library(own / "declared.so", gil="keep")
    return [
        _processes(launch, python, own, declared),
        _run_times(json.loads(made.stdout)),
        *(_calls(name, own / "calls.so", declared) for name in TITLES),
    ]


def _processes(launch: Launcher, python: str, own: Path, declared: Path) -> Table:
    """Whole processes, from start to end."""

    def sample(interpreter: str, code: str, path: Path) -> Sample:
        return launch([interpreter, "-I", "-c", code, path]).sample()

    ours = partial(sample, sys.executable)
    cases = [
        Case("python -c pass (reference)", lambda: ours("pass", own)),
        Case("import runtime", lambda: ours("import runtime", own)),
        Case("runtime: load, call C", lambda: ours(RUNTIME, declared)),
        Case("runtime: load, call Numba's code", lambda: ours(RUNTIME, own / "calls.so")),
        Case("numba: import, call a cached function", lambda: sample(python, NUMBA, own)),
    ]
    notes = ("aim: runtime at most 5 ms over python",)
    rows = interleave(cases, ROUNDS)
    return Table("numba: a fresh process, from start to end", rows, "ms", "peak", notes)


def _run_times(pairs: dict[str, list[tuple[float, float]]]) -> Table:
    """Calls of some milliseconds, in one process; `ratio` is the median of the pairs."""
    rows = []
    for name, samples in pairs.items():
        theirs, ours = zip(*samples, strict=True)
        rows.append(Row(f"{name}: Numba's JIT", tuple({"seconds": s} for s in theirs)))
        rows.append(Row(f"{name}: runtime", tuple({"seconds": s} for s in ours)))
    notes = ("aim: each at most 1.05 times as long as the JIT",)
    return Table("numba: run time with --cpu native", rows, "ms", notes=notes, group=2)


def _calls(name: str, numba_code: Path, declared: Path) -> Table:
    """The cost of a call, beside a C function with the same arguments; both keep the GIL."""

    def call(path: Path) -> Call:
        return peers.PLAIN[name], {"f": runtime.load(path)[name]}

    def case(label: str, path: Path) -> Case:
        expression, names = call(path)
        return Case(label, timed(expression, {**ARGUMENTS[name], **names}))

    cases = [
        Case("empty loop", timed("pass", {})),
        case("C function (reference)", declared),
        case("Numba's code", numba_code),
    ]
    empty, *rows = interleave(cases, ROUNDS)
    cost = sorted(s["seconds"] for s in empty.samples)[ROUNDS // 2]
    notes = (f"the empty loop's {cost * 1e9:.1f} ns are subtracted", "aim: as a C function")
    return Table(TITLES[name], [less(row, cost) for row in rows], "ns", notes=notes)
