"""Members: nanoseconds to read and write structs of C from Python, and to be called back by C."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from call import ROUNDS, less, timed
from measure import Case, Launcher, Sample, interleave, is_installed
from table import Table

import packer
import runtime

STRUCTS = """
typedef struct node { struct node *next; double value; int count; int marks[8]; } node;
node *node_new(double value);
double node_value(const node *n);
void on(int (*f)(int));
int fire(int n);
"""
CODE = """
#include <stdlib.h>
static int (*kept)(int);
node *node_new(double value) { node *n = calloc(1, sizeof *n); n->value = value; return n; }
double node_value(const node *n) { return n->value; }
void on(int (*f)(int)) { kept = f; }
int fire(int n) { int sum = 0; for (int i = 0; i < n; i++) sum += kept(i); return sum; }
"""
CALLS = 100  # of the callback, in one call of fire
ROWS = {
    "node.value (double)": ("n.value", 1),
    "node.value = 2.5": ("n.value = 2.5", 1),
    "node.count (int)": ("n.count", 1),
    "node.count = 7": ("n.count = 7", 1),
    "node.next": ("n.next", 1),
    "node.next.value": ("n.next.value", 1),
    "node.marks[3]": ("n.marks[3]", 1),
    "new(node)": ("new()", 1),
    "f(node) -> double": ("f(n)", 1),
    f"a kept callback, each of {CALLS}": (f"fire({CALLS})", CALLS),
}


def tables(folder: Path, _launch: Launcher) -> list[Table]:
    """Measure every expression here and with cffi's API mode."""
    peers: list[tuple[str, Callable[[Path], dict[str, Any]], str | None]] = [
        ("cffi, API mode", with_cffi, "cffi"),
        ("runtime", with_runtime, None),
    ]
    names = {peer: make(folder) for peer, make, package in peers if is_installed(package)}
    made = []
    for title, (expression, count) in ROWS.items():
        loop = Case("empty loop", timed("pass", {}))
        cases = [
            Case(peer, each(expression, names.get(peer, {}), count), package)
            for peer, _, package in peers
        ]
        empty, *rows = interleave([loop, *cases], ROUNDS)
        cost = min(sample["seconds"] for sample in empty.samples) / count
        made.append(Table(title, [less(row, cost) for row in rows], "ns"))
    return made


def each(expression: str, names: dict[str, Any], count: int) -> Callable[[], Sample]:
    """Time an expression that does a thing `count` times."""
    measure = timed(expression, names) if names else dict
    return lambda: {"seconds": measure()["seconds"] / count}


def with_runtime(folder: Path) -> dict[str, Any]:
    """The names of the expressions, of our library."""
    functions = {"*": "auto", "on": {"kept": "forever"}}
    host = packer.CSourceModule(STRUCTS + CODE, functions=functions)
    model = runtime.load(packer.export_library(host, folder / "members.so"))
    node = model["node_new"](1.0)
    node.next = model["node_new"](2.0)
    model["on"](lambda i: i)
    new = runtime.new
    return {
        "n": node,
        "f": model["node_value"],
        "fire": model["fire"],
        "new": lambda: new(model, "node"),
    }


def with_cffi(folder: Path) -> dict[str, Any]:
    """The same names, of cffi's API mode."""
    from cffi import FFI

    builder = FFI()
    builder.cdef(STRUCTS + 'extern "Python" int called(int);')
    builder.set_source("_members_cffi", STRUCTS + CODE)
    path = builder.compile(tmpdir=str(folder))
    spec = importlib.util.spec_from_file_location("_members_cffi", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    ffi, lib = module.ffi, module.lib
    ffi.def_extern("called")(lambda i: i)
    lib.on(lib.called)
    node = lib.node_new(1.0)
    node.next = lib.node_new(2.0)
    return {"n": node, "f": lib.node_value, "fire": lib.fire, "new": lambda: ffi.new("node *")}
