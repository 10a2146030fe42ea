"""Small programs with state, from Python's assembler: a sum of all numbers so far, and the last."""

from __future__ import annotations

from pathlib import Path

import packer
from packer.relax import MACHINE, DataType, Program
from runtime.modules.vm import VMExecutable

FLOAT32 = DataType(2, 32)
_CODE = """
#include "dso_packer.h"
int64_t plus(int64_t a, int64_t b) { return a + b; }
/* A negative number is an error after it is stored. */
dso_status put(float x, const DLTensor *rows, int64_t count) {
  ((float *)rows->data)[count - 1] = x;
  return x < 0 ? dso_raise("ValueError", "put: a negative number") : 0;
}
double sum(const DLTensor *rows) {
  double all = 0;
  for (int64_t i = 0; i < rows->shape[0]; i++) all += ((float *)rows->data)[i];
  return all;
}
double swap(float x, const float *before, float *after) { return *after = x, *before; }
"""
_TYPES = {
    "plus": "int64_t(int64_t a, int64_t b)",
    "put": "dso_status(float x, const DLTensor *rows, int64_t count)",
    "sum": "double(const DLTensor *rows)",
    "swap": "double(float x, const float *before, float *after)",
}


_HOST = packer.CSourceModule(_CODE, functions=_TYPES)


def stateful(state: int = 0, names: tuple[str, str] = ("main", "last")) -> VMExecutable:
    """``main(x)`` appends x and returns the sum; ``last(x)`` returns the x of the call before."""
    program = Program()
    main = program.function(names[0], ["x"])
    heap = main.call("vm.builtin.alloc_shape_heap", MACHINE, 1)
    count = main.call("plus", main.call("dso.state.extent", state, 0), 1)
    main.run("vm.builtin.match_prim_value", count, heap, 1, 0, "")
    shape = main.call("vm.builtin.make_shape", heap, 1, 1, 0)
    rows = main.call("dso.state.append", state, shape, FLOAT32)
    main.run("put", main.params[0], rows, count)
    main.ret(main.call("sum", rows))
    last = program.function(names[1], ["x"])
    before = last.call("dso.state.read", state + 1, (1,), FLOAT32)
    after = last.call("dso.state.write", state + 1, (1,), FLOAT32)
    last.ret(last.call("swap", last.params[0], before, after))
    executable = program.executable()
    executable.import_module(_HOST)
    return executable


def library(folder: Path, name: str = "state.so", state: int = 0) -> Path:
    """A library of `stateful`."""
    return packer.export_library(stateful(state), folder / name)
