"""Forms: nanoseconds of a call with a handle, a callback, a keyword, an out-parameter, a struct."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

from call import ROUNDS, less, timed
from measure import Case, Launcher, Sample, interleave
from peers import cffi_extension
from table import Table

import packer
import runtime

SOURCE = Path(__file__).with_name("forms.c")
TYPES = """
typedef struct counter counter;
typedef struct { double x, y; } point;
"""
DECLARATIONS = {
    "of_int": "int64_t(int64_t a)",
    "make_counter": "counter *(void)",
    "of_handle": "int64_t(const counter *c)",
    "of_callback": "int64_t(int64_t (*f)(int64_t), int64_t a)",
    "of_out": "int(double x, double *twice)",
    "of_struct": "double(point p)",
    "of_text": "const char *(const char *text)",
}
# The expressions of each form; ctypes and cffi have no keywords, and get a callback that was made
# before.
RUNTIME = {
    "f(int)": "of_int(a)",
    "f(handle)": "of_handle(h)",
    "f(a=int), by keyword": "of_int(a=a)",
    "f(callback, int)": "of_callback(g, a)",
    "f(double, double *out)": "of_out(r)",
    "f(struct of two doubles)": "of_struct((r, r))",
    "f(str) -> str": "of_text(s)",
}
CFFI = {
    "f(int)": "of_int(a)",
    "f(handle)": "of_handle(h)",
    "f(callback, int)": "of_callback(c, a)",
    "f(double, double *out)": "p = new('double *'); of_out(r, p), p[0]",
    "f(struct of two doubles)": "of_struct((r, r))",
    "f(str) -> str": "string(of_text(s.encode())).decode()",
}
CTYPES = {
    **CFFI,
    "f(double, double *out)": "p = new(); of_out(r, byref(p)), p.value",
    "f(struct of two doubles)": "of_struct(point(r, r))",
    "f(str) -> str": "of_text(s.encode()).decode()",
}
VALUES = {"a": 1_234_567, "r": 0.5, "s": "a string", "g": lambda value: value}


def tables(folder: Path, _launch: Launcher) -> list[Table]:
    """Measure every form with every peer that has it, in this process."""
    made: list[Case] = []
    for form, expression in RUNTIME.items():
        made.append(Case(f"{form}: runtime", _lazily(expression, _with_runtime, folder)))
        if form in CFFI:
            call = _lazily(CFFI[form], _with_cffi, folder)
            made.append(Case(f"{form}: cffi, API mode", call, "cffi"))
            call = _lazily(CTYPES[form], _with_ctypes, folder)
            made.append(Case(f"{form}: ctypes", call))
    empty, *rows = interleave([Case("empty loop", timed("pass", {})), *made], ROUNDS)
    cost = median(sample["seconds"] for sample in empty.samples)
    notes = [
        f"the empty loop's {cost * 1e9:.1f} ns are subtracted",
        "aim: f(handle) of runtime at most 10 ns over f(int)",
    ]
    return [Table("call of each form", [less(row, cost) for row in rows], "ns", notes=tuple(notes))]


def _lazily(
    expression: str, peer: Callable[[Path], dict[str, Any]], folder: Path
) -> Callable[[], Sample]:
    prepared: list[Callable[[], Sample]] = []

    def measure() -> Sample:
        if not prepared:
            names = {**VALUES, **peer(folder)}
            used = {name: value for name, value in names.items() if name in expression}
            prepared.append(timed(expression, used))
        return prepared[0]()

    return measure


def _with_runtime(folder: Path) -> dict[str, Any]:
    library = _library(folder)
    names = {name: library[name] for name in DECLARATIONS}
    return {**names, "h": library["make_counter"]()}


def _library(folder: Path) -> Any:
    path = folder / "forms.so"
    if not path.exists():
        functions: dict[str, Any] = {**DECLARATIONS}
        functions["of_out"] = {"declaration": DECLARATIONS["of_out"], "out": ["twice"]}
        packer.export_library(packer.CSourceModule(SOURCE, functions=functions), path)
    return runtime.load(path)


def _with_cffi(folder: Path) -> dict[str, Any]:
    extension = cffi_extension(folder, "_forms_cffi", DECLARATIONS, SOURCE, TYPES)
    ffi, lib = extension.ffi, extension.lib
    callback = ffi.callback("int64_t(int64_t)", VALUES["g"])
    names = {name: getattr(lib, name) for name in DECLARATIONS}
    return {**names, "h": lib.make_counter(), "c": callback, "new": ffi.new, "string": ffi.string}


class _Point(ctypes.Structure):
    _fields_ = (("x", ctypes.c_double), ("y", ctypes.c_double))


def _with_ctypes(folder: Path) -> dict[str, Any]:
    _library(folder)
    library = ctypes.CDLL(str(folder / "forms.so"))
    i64, pointer, number = ctypes.c_int64, ctypes.c_void_p, ctypes.c_double
    callback = ctypes.CFUNCTYPE(i64, i64)
    types: dict[str, tuple[list[Any], Any]] = {
        "of_int": ([i64], i64),
        "make_counter": ([], pointer),
        "of_handle": ([pointer], i64),
        "of_callback": ([callback, i64], i64),
        "of_out": ([number, ctypes.POINTER(number)], ctypes.c_int),
        "of_struct": ([_Point], number),
        "of_text": ([ctypes.c_char_p], ctypes.c_char_p),
    }
    names = {name: library[name] for name in types}
    for name, function in names.items():
        function.argtypes, function.restype = types[name]
    made = {"c": callback(VALUES["g"]), "new": number, "byref": ctypes.byref, "point": _Point}
    return {**names, **made, "h": names["make_counter"]()}
