"""Wrappers called by a real tvm_ffi."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def run_tvm_ffi(library: Path, code: str) -> str:
    """Run code against a library that the real tvm_ffi loads, in a separate process."""
    start = "import sys, numpy as np, tvm_ffi\nm = tvm_ffi.load_module(sys.argv[1])\n"
    command = [sys.executable, "-c", start + code, str(library)]
    made = subprocess.run(command, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr
    return made.stdout


def test_tvm_ffi_calls_with_numbers_and_arrays(product: Path) -> None:
    """NumPy arrays, numbers, bools and None are accepted; numbers are returned."""
    code = """
x = np.arange(3, dtype="float32")
print(m["index"](x, 5), m["index"](None, 5), m["gamma"](1), m["read"](1), m["main"](x, 6))
print(m["in_float"](x) == x.ctypes.data, m["in_bool"](np.ones(2, bool)) > 0, m["ndim"](x))
print(m["flip"](True), m["half"](3), m["same_int8_t"](-128), m["touch"]())
"""
    assert run_tvm_ffi(product, code) == "5 -5 2 4 6\nTrue True 1\nFalse 1.5 -128 None\n"


def test_tvm_ffi_reads_string_results(product: Path) -> None:
    """Small ones, heap ones, None; thousands of them are released."""
    code = """
print(*(m["letters"](n) == "a" * n for n in (0, 3, 7, 8, 1000)), m["letters"](-1))
print(*(m["echo"](s) == s and m["length"](s) == len(s.encode()) for s in ("", "h\xe9", "x" * 900)))
for _ in range(2000): m["letters"](1999)
"""
    assert run_tvm_ffi(product, code) == "True True True True True None\nTrue True True\n"


def test_tvm_ffi_raises_the_error_of_a_wrapper(product: Path) -> None:
    """Kind and message arrive as a Python exception, of the kinds that tvm_ffi registers."""
    code = """
tvm_ffi.register_error("OverflowError", OverflowError)
for name, args in [("index", (np.zeros(3, "int64"), 1)), ("same_int8_t", (128,)),
                   ("in_float", (np.zeros((4, 4), "float32").T,)), ("half", ())]:
    try: m[name](*args)
    except Exception as error: print(type(error).__name__, str(error))
"""
    assert run_tvm_ffi(product, code).splitlines() == [
        "TypeError index: argument 1 'x' (const float *): expected a contiguous CPU tensor of"
        " float32, found int64[3] on cpu; declared as int64_t index(const float *x, int64_t n)",
        "OverflowError same_int8_t: argument 1 'x' (int8_t): expected an int in -128 .. 127,"
        " found 128; declared as int8_t same_int8_t(int8_t x)",
        "ValueError in_float: argument 1 'x' (const float *): expected a contiguous CPU tensor of"
        " float32, found float32[4, 4] on cpu with strides [1, 4]; declared as"
        " uintptr_t in_float(const float *x)",
        "TypeError half: expected 1 argument, found 0; declared as float half(float x)",
    ]
