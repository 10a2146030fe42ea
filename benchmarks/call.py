"""Call: nanoseconds from Python into a C function that does next to nothing, and back."""

from __future__ import annotations

import ctypes
import gc
import io
import operator
import subprocess
import sysconfig
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from statistics import median
from timeit import Timer
from typing import Any

import numpy as np
from library import DECLARATIONS, KERNELS, build_library
from measure import Case, Command, Launcher, Row, Sample, interleave
from table import Table

import runtime

ROUNDS = 15
# One sample is as many calls as fill this time: long beside the clock, short beside a time slice.
SAMPLE_SECONDS = 0.008

# A call: the expression that is timed, and the function f and converter c that it uses. What a
# peer wants converted is converted in every call, from the same arguments.
Call = tuple[str, Any, Any]
ARGUMENTS: dict[str, object] = {
    "a": 1_234_567,
    "b": 7_654_321,
    "x": np.ones(1024, np.float32),
    "y": np.zeros(1024, np.float32),
    "s": "a string",
}
TITLES = {
    "noop": "call f()",
    "add": "call f(int, int) -> int",
    "pair": "call f(ndarray, ndarray)",
    "first": "call f(str) -> int",
}
AIMS = {
    "add": "aim: runtime at most 65 ns; 45 with the GIL kept",
    "pair": "aim: runtime at most 100 ns; 80 with the GIL kept",
}
# What a call into C costs at least: functions of the interpreter itself.
BUILTINS: dict[str, Call] = {
    "noop": ("f()", gc.isenabled, None),
    "add": ("f(a, b)", operator.add, None),
    "pair": ("f(x, y)", operator.is_, None),
    "first": ("f(s)", operator.truth, None),
}


def tables(folder: Path, _launch: Launcher) -> list[Table]:
    """Measure every function through every peer, in this process."""
    release = build_library(folder / "call.so")
    keep = build_library(folder / "call_keep.so", gil="keep")
    # Each gives the call of a function by name. The GIL is released where nothing is said.
    peers: list[tuple[str, Callable[[str], Call], str | None]] = [
        ("ctypes (reference)", partial(_ctypes, ctypes.CDLL(str(release))), None),
        ("ctypes, GIL kept", partial(_ctypes, ctypes.PyDLL(str(release))), None),
        ("cffi, API mode", partial(_cffi, folder), "cffi"),
        ("tvm_ffi", partial(_tvm_ffi, release, True), "tvm_ffi"),
        ("tvm_ffi, GIL kept", partial(_tvm_ffi, release, False), "tvm_ffi"),
        ("runtime", partial(_runtime, runtime.load(release)), None),
        ("runtime, GIL kept", partial(_runtime, runtime.load(keep)), None),
        ("a builtin of Python", BUILTINS.__getitem__, None),
    ]
    return [_table(name, peers) for name in DECLARATIONS]


def _table(name: str, peers: list[tuple[str, Callable[[str], Call], str | None]]) -> Table:
    loop = Case("empty loop", _timed("pass", {}))
    cases = [Case(peer, _lazily(call, name), package) for peer, call, package in peers]
    empty, *rows = interleave([loop, *cases], ROUNDS)
    cost = median(sample["seconds"] for sample in empty.samples)
    notes = [f"the empty loop's {cost * 1e9:.1f} ns are subtracted"]
    if name in AIMS:
        notes.append(AIMS[name])
    return Table(TITLES[name], [_less(row, cost) for row in rows], "ns", notes=tuple(notes))


def _less(row: Row, seconds: float) -> Row:
    samples = tuple({"seconds": sample["seconds"] - seconds} for sample in row.samples)
    return Row(row.name, samples, row.absent)


def _lazily(call: Callable[[str], Call], name: str) -> Callable[[], Sample]:
    """Prepare the call when it is first measured: a peer that is not installed never is."""
    prepared: list[Callable[[], Sample]] = []

    def measure() -> Sample:
        if not prepared:
            expression, function, converter = call(name)
            prepared.append(_timed(expression, {**ARGUMENTS, "f": function, "c": converter}))
        return prepared[0]()

    return measure


def _timed(expression: str, names: dict[str, Any]) -> Callable[[], Sample]:
    """Time an expression whose names are local variables, as in a function that calls."""
    setup = "\n".join(f"{name} = names[{name!r}]" for name in names) or "pass"
    timer = Timer(expression, setup, globals={"names": names})
    number = 1000
    while timer.timeit(number) < SAMPLE_SECONDS:
        number *= 2

    return lambda: {"seconds": timer.timeit(number) / number}


def _ctypes(library: ctypes.CDLL, name: str) -> Call:
    pointer, i64 = ctypes.c_void_p, ctypes.c_int64
    expression, types, result = {
        "noop": ("f()", [], None),
        "add": ("f(a, b)", [i64, i64], i64),
        "pair": ("f(x.ctypes.data, y.ctypes.data)", [pointer, pointer], None),
        "first": ("f(s.encode())", [ctypes.c_char_p], i64),
    }[name]
    function = library[name]
    function.argtypes, function.restype = types, result  # type: ignore[assignment]
    return expression, function, None


def _cffi(folder: Path, name: str) -> Call:
    extension = _cffi_extension(folder)
    expression = {
        "noop": "f()",
        "add": "f(a, b)",
        "pair": "f(c(x), c(y))",
        "first": "f(s.encode())",
    }[name]
    from_buffer, floats = extension.ffi.from_buffer, extension.ffi.typeof("float[]")
    return expression, getattr(extension.lib, name), partial(from_buffer, floats)


def _cffi_extension(folder: Path) -> Any:
    import cffi  # type: ignore[import-untyped]

    source, module = folder / "_call_cffi.c", folder / "_call_cffi.so"
    if not module.exists():
        ffi = cffi.FFI()
        for name, declaration in DECLARATIONS.items():
            ffi.cdef(declaration.replace("(", f" {name}(", 1) + ";")
        ffi.set_source("_call_cffi", KERNELS.read_text(encoding="utf-8"))
        with redirect_stdout(io.StringIO()):  # it says that it does
            ffi.emit_c_code(str(source))
        include = f"-I{sysconfig.get_path('include')}"
        command: Command = ["gcc", "-O2", "-shared", "-fPIC", include, "-o", module, source]
        subprocess.run(command, check=True)
    spec = spec_from_file_location("_call_cffi", module)
    assert spec is not None
    return module_from_spec(spec)


def _tvm_ffi(library: Path, release_gil: bool, name: str) -> Call:
    import tvm_ffi

    function = tvm_ffi.load_module(str(library))[name]
    function.release_gil = release_gil
    return BUILTINS[name][0], function, None


def _runtime(module: runtime.Module, name: str) -> Call:
    return BUILTINS[name][0], module[name], None
