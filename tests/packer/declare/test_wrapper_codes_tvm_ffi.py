"""Wrappers of every code, called by a real tvm_ffi: each row of the table in docs/format.md."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ...support import needs
from ...support.every_code import CODE, DECLARATIONS
from ...support.wrapped_library import build_declared

ROWS = """
from ctypes import c_void_p
x = np.arange(6, dtype="float64")
def plain(value):
    return [plain(v) for v in value] if isinstance(value, tvm_ffi.Array) else value
def show(name, *args):
    try: print(name, plain(m[name](*args)))
    except Exception as error: print(name, type(error).__name__, str(error).split(";")[0])
"""


def run(library: Path, code: str, **environment: str) -> list[str]:
    """Run code in a separate process, with the library loaded as `m`; give the lines of output."""
    start = "import sys, numpy as np, tvm_ffi\nm = tvm_ffi.load_module(sys.argv[1])\n"
    start += 'tvm_ffi.register_error("OverflowError", OverflowError)\n'
    start += 'tvm_ffi.register_error("OSError", OSError)\n'
    command = [sys.executable, "-c", start + ROWS + code, str(library)]
    variables = {**os.environ, **environment}
    made = subprocess.run(command, capture_output=True, text=True, env=variables)
    assert made.returncode == 0, made.stderr[-3000:]
    return made.stdout.splitlines()


def test_numbers(codes_product: Path) -> None:
    """char, half precision, complex."""
    code = """
show("next_char", 65)
show("half16", 3)
show("half", 1e300)
show("half", float("inf"))
show("turned", [1.0, 2])
show("turned", np.array(1 + 2j))
show("turned_float", np.array([1 + 2j], "complex64"))
show("turned", 2)
show("turned", "2")
"""
    assert run(codes_product, code) == [
        "next_char 66",
        "half16 1.5",
        "half OverflowError half: argument 1 'x' (float): expected a finite number that the type"
        " holds, found 1e+300",
        "half inf",
        "turned [-2.0, 1.0]",
        "turned [-2.0, 1.0]",
        "turned_float [-2.0, 1.0]",
        "turned [0.0, 2.0]",
        "turned TypeError turned: argument 1 'z' (double _Complex): expected a number, an array of"
        " two numbers or a complex tensor of one element, found str",
    ]


def test_pointers_and_extents(codes_product: Path) -> None:
    """Arrays, bytes, addresses, structs."""
    code = """
show("total", x, 6)
show("total", x, 7)
show("total", None, 0)
show("trace", x.reshape(2, 3), 2, 3)
show("trace", x.reshape(3, 2), 2, 3)
text = np.zeros(3, "int8")
show("fill", text, 2)
print(bytes(text), m["address"](text) == text.ctypes.data)
show("fill", None, 2)
show("fill", b"abc", 2)
show("first", b"a")
show("first", b"a" * 100)
show("first", bytearray(b"b"))
show("first", None)
show("anything", c_void_p(77))
show("anything_writable", c_void_p(78))
p = np.array([(3, 4, 0)], dtype=[("x", "f8"), ("y", "f4"), ("pad", "f4")]).view("uint8")
show("norm", p)
show("norm", bytes(p))
show("norm", p[:8])
show("shift", p, 1)
print(p.view("f8")[0])
"""
    assert run(codes_product, code) == [
        "total 15.0",
        "total ValueError total: argument 1 'x' (const double *): expected at least 7 elements"
        " for [7], found float64[6] on cpu",
        "total TypeError total: argument 1 'x' (const double *): expected at least 0 elements"
        " for [0], found None",
        "trace 4.0",
        "trace ValueError trace: argument 1 'x' (double *): expected extent 3 of axis 1,"
        " found 2 in float64[3, 2] on cpu",
        "fill None",
        "b'xx\\x00' True",
        "fill None",
        "fill TypeError fill: argument 1 'text' (char *): expected a contiguous CPU tensor of int8"
        " or uint8 or None, found bytes",
        "first 97",
        "first 97",
        "first 98",
        "first -1",
        "anything 77",
        "anything_writable 78",
        "norm 5.0",
        "norm 5.0",
        "norm ValueError norm: argument 1 'p' (const point *): expected at least 16 bytes, found"
        " uint8[8] on cpu",
        "shift None",
        "4.0",
    ]


def test_text_and_handles(codes_product: Path) -> None:
    """Arrays of text, text that is released, handles."""
    code = """
show("joined", ["a", "bc", "d" * 50])
show("joined", ("a", b"b"))
show("joined", None)
show("joined", ["a", 1])
show("joined_n", ["a", "bc"], 3)
show("repeated", b"ab", 3)
show("repeated", "ab" * 40, 2)
show("repeated", "ab", -1)
show("frees")
c = m["counter_new"](5)
print(type(c).__name__, m["counter_next"](c), m["counter_next"](c), m["living"]())
m["counter_free"](c)
show("counter_new", -1)
show("counter_next", None)
show("counter_next", 5)
code, c = m["counter_open"](8)
print(code, m["counter_next"](c), m["counter_free"](c), m["living"]())
"""
    lines = run(codes_product, code)
    assert lines == [
        "joined 53",
        "joined 2",
        "joined 0",
        "joined TypeError joined: argument 1 'names' item 1 (const char *const *): expected a str,"
        " found int",
        "joined_n ValueError joined_n: argument 1 'names' (char **): expected an array of at least"
        " 3 str, found 2",
        "repeated ababab",
        "repeated " + "ab" * 80,
        "repeated None",
        "frees 2",
        "c_void_p 5 6 1",
        "counter_new None",
        "counter_next -1",
        "counter_next TypeError counter_next: argument 1 'c' (counter *): expected a handle (an"
        " opaque pointer) or None, found int",
        "0 8 None 0",
    ]


def test_structs_and_several_results(codes_product: Path) -> None:
    """Arrays in and out; errno; defaults."""
    code = """
show("mirrored", (1.5, -2))
show("mirrored", [1.5, "a"])
show("grown", [(1, 2), (3, 4), [1, 2, 3], False, "box"])
show("oddly", [[1, 2], [[1, 2], [3, 4]], 3])
show("stats", x, 6)
show("only_mean", x, 6)
show("checked", 6)
show("checked", -6)
show("described", 2)
show("described", 50)
show("named", 0)
show("opened", "ok")
show("opened", "no")
show("scaled", 10)
show("scaled", 10, 3, 5.5, "1234567", False)
show("scaled")
show("print_int", 4)
for _ in range(3000): m["described"](500)
"""
    assert run(codes_product, code) == [
        "mirrored [-1.5, 2.0]",
        "mirrored TypeError mirrored: argument 1 'p' field 'y' (float): expected a float, found"
        " str",
        "grown [[1.0, 2.0], [4.0, 4.0], [1, 2, 4], True, 'box']",
        "oddly [[2.0, 4.0], [[1, 2], [7, 4]], 3.0]",
        "stats [6, 2.5, 5.0]",
        "only_mean 2.5",
        "checked [3, True, 97]",
        "checked ValueError negative",
        "described [5, 'abab', [2.0, 1.0]]",
        f"described [5, '{'ab' * 50}', [50.0, 1.0]]",
        "named ['name', None]",
        "opened 3",
        "opened OSError [Errno 2] No such file or directory",
        "scaled -23",
        "scaled 42",
        "scaled TypeError scaled: expected 1 to 5 arguments, found 0",
        "print_int 40",
    ]


# tvm_ffi cannot export a borrowed tensor through DLPack: it has the address and the shape.
CALLBACKS = """
import ctypes
def elements(tensor):
    return (ctypes.c_double * tensor.shape[0]).from_address(tensor.data_ptr())[:]
show("integral", lambda x, data: x * x, None, 0.0, 2.0)
show("integral", lambda x, data: data.value, c_void_p(5), 0.0, 1.0)
show("integral", lambda x, data: "a", None, 0.0, 2.0)
show("integral", 5, None, 0.0, 2.0)
def fail(*values): raise IndexError("mine")
show("integral", fail, None, 0.0, 1.0)
def visit(rest, n, text, names, p, z, t, big):
    seen.append([elements(rest), n, text, plain(names), plain(p), plain(z), t])
    return len(seen) < 2
seen = []
print(m["each"](x[:2], 2, visit), *seen, sep="\\n")
show("each", x, 2, None)
show("elsewhere", lambda data: None)
show("later")
show("sorted", lambda: 5, lambda a, b: a + b)
"""
CALLED = [
    "integral 4.0",
    "integral 5.0",
    "integral TypeError integral: result of callback 'f' (double): expected a float, found str",
    "integral TypeError integral: argument 1 'f' (double (*)(double, void *)): expected a function"
    " or None, found int",
    "integral IndexError mine",
    "1",
    "[[0.0, 1.0], 2, 'text', ['a', None, 'long enough'], [1.0, 2.0], [2.0, 1.0], None]",
    "[[1.0], 1, 'text', ['a', None, 'long enough'], [1.0, 2.0], [2.0, 1.0], None]",
    "each -1",
    "elsewhere RuntimeError elsewhere: callback 'run' was called by another thread, expected the"
    " caller's",
    "later RuntimeError elsewhere: callback 'run' was kept, and called after the call of"
    " 'elsewhere' had ended, when it does nothing, expected calls during 'elsewhere' alone",
    "sorted None",
]


def test_no_wrapper_leaves_its_memory(tmp_path: Path) -> None:
    """The same under the address sanitizer, and what allocates."""
    needs.program("g++")
    option = "-fsanitize=address"
    library = build_declared(tmp_path, CODE, DECLARATIONS, "-w", option)
    asked = [["gcc", f"-print-file-name={name}"] for name in ("libasan.so", "libstdc++.so")]
    found = " ".join(subprocess.check_output(command, text=True).strip() for command in asked)
    code = (
        'show("joined", ["a", "bc", "d" * 50, b"e"])\nshow("described", 50)\n'
        'show("repeated", "ab" * 40, 2)\nshow("joined", ["a", 1])\n'
        'show("first", b"a" * 100)\nshow("grown", [(1, 2), (3, 4), [1, 2, 3], False, "box"])\n'
    )
    made = run(library, CALLBACKS + code, LD_PRELOAD=found, ASAN_OPTIONS="detect_leaks=0")
    assert made[: len(CALLED)] == CALLED
    assert len(made) == len(CALLED) + 6


def test_callbacks(codes_product: Path) -> None:
    """Python functions; their exceptions pass through the C code."""
    assert run(codes_product, CALLBACKS) == CALLED
