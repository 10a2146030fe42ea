"""Cold start: a fresh process imports, loads a library, calls a function, and ends."""

from __future__ import annotations

import sys
from pathlib import Path

from library import MIB, build_library, build_with_tvm, write_payload
from measure import Case, Launcher, Sample, interleave, is_installed
from table import Table

ROUNDS = 25

RUNTIME = "import sys, runtime; runtime.load(sys.argv[1])['add'](40, 2)"
CTYPES = "import sys, ctypes; ctypes.CDLL(sys.argv[1]).add(40, 2)"
CFFI = (
    "import sys, cffi; f = cffi.FFI(); f.cdef('long add(long, long);'); "
    "f.dlopen(sys.argv[1]).add(40, 2)"
)
TVM_FFI = "import sys, tvm_ffi; tvm_ffi.load_module(sys.argv[1])['add'](40, 2)"
TVM = "import sys, tvm; tvm.runtime.load_module(sys.argv[1])['add'](40, 2)"


def tables(folder: Path, launch: Launcher) -> list[Table]:
    """Measure whole processes, each started with -I."""
    plain = build_library(folder / "cold.so")
    tree = build_library(folder / "cold_tree.so", payload=write_payload(folder, MIB))
    compiled = folder / "cold_tvm.so"
    if is_installed("tvm"):
        build_with_tvm(compiled)

    def python(code: str, path: Path = plain) -> Sample:
        return launch([sys.executable, "-I", "-c", code, path]).sample()

    cases = [
        Case("python -c pass (reference)", lambda: python("pass")),
        Case("runtime: load, call", lambda: python(RUNTIME)),
        Case("runtime: load a tree, call", lambda: python(RUNTIME, tree)),
        Case("ctypes: load, call", lambda: python(CTYPES)),
        Case("cffi: declare, load, call", lambda: python(CFFI), "cffi"),
        Case("tvm_ffi: load, call", lambda: python(TVM_FFI), "tvm_ffi"),
        Case("tvm: load TVM's code, call", lambda: python(TVM, compiled), "tvm"),
        Case("runtime: load TVM's code, call", lambda: python(RUNTIME, compiled), "tvm"),
        Case("import numpy", lambda: python("import numpy"), "numpy"),
    ]
    notes = ("aim: runtime at most 5 ms over python",)
    rows = interleave(cases, ROUNDS)
    return [Table("cold start: a fresh process, from start to end", rows, "ms", "peak", notes)]
