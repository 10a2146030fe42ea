"""Programs written with packer.relax, and C operators for them; real TVM runs them too."""

from __future__ import annotations

import numpy as np

import packer
import runtime
from packer.relax import MACHINE, DataType, Program

FLOAT32, UINT8 = DataType(2, 32), DataType(1, 8)

_COUNTING = """
#include <stdint.h>
int64_t is_less(int64_t a, int64_t b) { return a < b; }
int64_t increased(int64_t a) { return a + 1; }
"""

_SCALING = """
#include <stdint.h>
void scale(const float *x, const float *factors, int64_t factor, float *y, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i] * factors[factor];
}
int64_t is_square(int64_t rows, int64_t columns) { return rows == columns; }
int64_t product(int64_t a, int64_t b) { return a * b; }
"""


def counting() -> Program:
    """``main(n)`` counts to n with a loop."""
    program = Program()
    main = program.function("main", ["n"])
    number = main.call("vm.builtin.copy", 0)
    again, end = main.label(), main.label()
    main.place(again)
    condition = main.call("is_less", number, main.params[0])
    main.jump_if_zero(condition, end)
    main.release(number)
    assert main.call("increased", number) == number
    main.jump(again)
    main.place(end)
    main.ret(number)
    return program


def growing() -> packer.CSourceModule:
    """The operators of `counting`."""
    return packer.CSourceModule(_COUNTING, functions="auto")


def scaling() -> Program:
    """``main(x)`` with rows and columns: 3 * x if these are equal, else a tuple of 5 * x and x."""
    program = Program()
    main = program.function("main", ["x"])
    (x,) = main.params
    main.run("vm.builtin.check_tensor_info", x, 2, FLOAT32, "main: input 'x' ")
    heap = main.call("vm.builtin.alloc_shape_heap", MACHINE, 2)
    main.run("vm.builtin.match_shape", x, heap, 2, 1, 0, 1, 1, "main: input 'x' ")
    rows, columns = (main.call("vm.builtin.make_prim_value", heap, 1, i) for i in (0, 1))
    shape = main.call("vm.builtin.make_shape", heap, 2, 1, 0, 1, 1)
    storage = main.call("vm.builtin.alloc_storage", MACHINE, (4096,), 0, UINT8, "global")
    y = main.call("vm.builtin.alloc_tensor", storage, 64, shape, FLOAT32)
    main.kill(storage)
    number = main.call("product", rows, columns)
    other = main.label()
    main.jump_if_zero(main.call("is_square", rows, columns), other)
    main.run("scaled", x, 0, y, number)
    main.ret(y)
    main.place(other)
    main.run("scaled", x, 1, y, number)
    main.ret(main.call("vm.builtin.make_tuple", y, x))
    scaled = program.function("scaled", ["x", "factor", "y", "n"])
    x, factor, y, number = scaled.params
    factors = runtime.tensor(np.array([3, 5], np.float32))
    scaled.run("scale", x, factors, factor, y, number)
    scaled.ret(number)
    return program


def scaling_model() -> runtime.Module:
    """The program of `scaling` above its operators."""
    model = scaling().executable()
    model.import_module(packer.CSourceModule(_SCALING, functions="auto"))
    return model


_FINDING = """
#include "dso_packer.h"
dso_status sort_floats(float *x, float *y, int64_t n) {
  int64_t shape[1] = {n}, strides[1] = {1};
  DLTensor input = {.data = x, .device = {1, 0}, .ndim = 1, .dtype = {2, 32, 1},
                    .shape = shape, .strides = strides};
  DLTensor output = input;
  output.data = y;
  return dso_call("tvm.contrib.sort.sort", NULL, dso_tensor(&input), dso_tensor(&output),
                  dso_int(0), dso_bool(1));
}
"""


def finding_model() -> runtime.Module:
    """``main(x)``, for six floats: sorted, without repetitions, and the indices of those not 0."""
    program = Program()
    main = program.function("main", ["x"])
    (x,) = main.params
    storage = main.call("vm.builtin.alloc_storage", MACHINE, (24,), 0, UINT8, "global")
    y = main.call("vm.builtin.alloc_tensor", storage, 0, (6,), FLOAT32)
    main.run("sort_floats", x, y, 6)
    distinct = main.call("relax.run.unique", y, 1, 0, 0, 0)
    main.ret(main.call("vm.builtin.make_tuple", y, distinct, main.call("relax.run.nonzero", y)))
    model = program.executable()
    functions = {"sort_floats": "dso_status(float *x, float *y, int64_t n)"}
    model.import_module(packer.CSourceModule(_FINDING, functions=functions))
    return model
