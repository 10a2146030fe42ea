"""Call: nanoseconds of a call from Python to a nearly empty C function."""

from __future__ import annotations

import ctypes
import gc
import operator
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from timeit import Timer
from typing import Any

import numpy as np
import peers
from library import build_library, build_with_tvm
from measure import Case, Launcher, Row, Sample, interleave, is_installed
from peers import PLAIN, Call
from table import Table

ROUNDS = 15
# One sample is as many calls as fill this time: long against the clock, short against a time slice.
SAMPLE_SECONDS = 0.008

ARGUMENTS: dict[str, object] = {
    "a": 1_234_567,
    "b": 7_654_321,
    "r": 0.5,
    "k": True,
    "n": 1024,
    "x": np.ones(1024, np.float32),
    "y": np.zeros(1024, np.float32),
    "s": "a string",
    "g": lambda value: value,
}
TITLES = {
    "noop": "call f()",
    "add": "call f(int, int) -> int",
    "pair": "call f(ndarray, ndarray)",
    "torch": "call f(torch.Tensor, torch.Tensor)",
    "first": "call f(str) -> int",
    "mixed": "call f(int, float, bool, str, ndarray, ndarray, int, int) -> float",
    "apply": "call f(function, int) -> int, which calls function(int) -> int",
    "thread": "call f(int, int) -> int, from a loop in another thread",
}
AIMS = {
    "add": "aim: runtime at most 65 ns; 45 with the GIL kept",
    "pair": "aim: runtime at most 100 ns; 80 with the GIL kept",
    "torch": "aim: runtime at most 170 ns",
}
# The least cost of a call into C: functions of the interpreter itself.
BUILTINS: dict[str, Any] = {
    "noop": gc.isenabled,
    "add": operator.add,
    "pair": operator.is_,
    "torch": operator.is_,
    "first": operator.truth,
    "thread": operator.add,
}
# Packages without a call of this kind: pybind11 takes no tensors.
ABSENT = {("torch", "pybind11")}

Peer = tuple[str, Callable[[str], Call], str | None]


def tables(folder: Path, _launch: Launcher) -> list[Table]:
    """Measure every function with every peer, in this process."""
    release = {
        "all": build_library(folder / "call.so"),
        "apply": peers.build_apply(folder / "apply.so", "release"),
    }
    keep = {
        "all": build_library(folder / "call_keep.so", gil="keep"),
        "apply": peers.build_apply(folder / "apply_keep.so", "keep"),
    }
    # Each gives the call of a function by name; cffi cannot keep the GIL.
    bindings = partial(peers.with_bindings, folder)
    released, kept = ctypes.CDLL(str(release["all"])), ctypes.PyDLL(str(release["all"]))
    every: list[Peer] = [
        ("ctypes (reference)", partial(peers.with_ctypes, released), None),
        ("cffi, API mode", partial(peers.with_cffi, folder), "cffi"),
        ("pybind11", partial(bindings, "pybind11", "release"), "pybind11"),
        ("nanobind", partial(bindings, "nanobind", "release"), "nanobind"),
        ("tvm_ffi", partial(peers.with_tvm_ffi, release, True), "tvm_ffi"),
        ("runtime", partial(peers.with_runtime, release), None),
        ("ctypes, GIL kept", partial(peers.with_ctypes, kept), None),
        ("pybind11, GIL kept", partial(bindings, "pybind11", "keep"), "pybind11"),
        ("nanobind, GIL kept", partial(bindings, "nanobind", "keep"), "nanobind"),
        ("tvm_ffi, GIL kept", partial(peers.with_tvm_ffi, release, False), "tvm_ffi"),
        ("runtime, GIL kept", partial(peers.with_runtime, keep), None),
        ("a builtin of Python", _builtin, None),
    ]
    compiled = _compiled_by_tvm(folder)
    return [
        _table(name, [peer for peer in every if _is_able(name, peer)] + compiled.get(name, []))
        for name in TITLES
    ]


def _compiled_by_tvm(folder: Path) -> dict[str, list[Peer]]:
    """The rows of functions that TVM compiled: one library, loaded by TVM and by the runtime."""
    library = folder / "call_tvm.so"
    if is_installed("tvm"):
        build_with_tvm(library)
    code = partial(peers.with_tvm_code, library)
    arrays: list[Peer] = [
        ("tvm, TVM's code", partial(code, "tvm", False), "tvm"),
        ("runtime, TVM's code", partial(code, "runtime", False), "tvm"),
    ]
    tensors: list[Peer] = [
        ("tvm, TVM's code, tvm's tensors", partial(code, "tvm", True), "tvm"),
        ("runtime, TVM's code, runtime's tensors", partial(code, "runtime", True), "tvm"),
    ]
    return {"add": arrays, "pair": arrays + tensors}


def _is_able(name: str, peer: Peer) -> bool:
    """Return True if the peer has such a call."""
    _, call, package = peer
    return (name, package) not in ABSENT and (name in BUILTINS or call is not _builtin)


def _builtin(name: str) -> Call:
    return PLAIN[name], {"f": BUILTINS[name]}


def _table(name: str, able: list[Peer]) -> Table:
    run = _in_thread if name == "thread" else _here
    missing = "torch" if name == "torch" and not is_installed("torch") else None
    loop = Case("empty loop", timed("pass", {}, run))
    cases = [Case(peer, _lazily(call, name, run), missing or package)
             for peer, call, package in able]  # fmt: skip
    empty, *rows = interleave([loop, *cases], ROUNDS)
    cost = median(sample["seconds"] for sample in empty.samples)
    notes = [f"the empty loop's {cost * 1e9:.1f} ns are subtracted"]
    if name in AIMS:
        notes.append(AIMS[name])
    return Table(TITLES[name], [less(row, cost) for row in rows], "ns", notes=tuple(notes))


def less(row: Row, seconds: float) -> Row:
    """Subtract the cost of the loop from every sample."""
    samples = tuple({"seconds": sample["seconds"] - seconds} for sample in row.samples)
    return Row(row.name, samples, row.absent)


Runner = Callable[[Timer, int], float]


def _here(timer: Timer, number: int) -> float:
    return timer.timeit(number)


def _in_thread(timer: Timer, number: int) -> float:
    taken: list[float] = []
    thread = threading.Thread(target=lambda: taken.append(timer.timeit(number)))
    thread.start()
    thread.join()
    return taken[0]


def _lazily(call: Callable[[str], Call], name: str, run: Runner) -> Callable[[], Sample]:
    """Prepare the call at its first measurement, so that a peer may be missing."""
    prepared: list[Callable[[], Sample]] = []

    def measure() -> Sample:
        if not prepared:
            expression, names = call(name)
            prepared.append(timed(expression, {**ARGUMENTS, **_tensors(name), **names}, run))
        return prepared[0]()

    return measure


def _tensors(name: str) -> dict[str, object]:
    """The arguments that PyTorch makes, if the call uses them."""
    if name != "torch":
        return {}
    import torch  # type: ignore[import-not-found,unused-ignore]

    return {"t": torch.ones(1024), "u": torch.zeros(1024)}


def timed(expression: str, names: dict[str, Any], run: Runner = _here) -> Callable[[], Sample]:
    """Time an expression whose names are local variables, as in a calling function."""
    setup = "\n".join(f"{name} = names[{name!r}]" for name in names) or "pass"
    timer = Timer(expression, setup, globals={"names": names})
    number = 1000
    while run(timer, number) < SAMPLE_SECONDS:
        number *= 2

    return lambda: {"seconds": run(timer, number) / number}
