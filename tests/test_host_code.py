"""User's host code that calls imports through dso_packer.h, exported and loaded."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from packer.declare.c_type import parse_functions

from .support.importing import importing
from .support.process import run_python

SOURCE = """
#include "dso_packer.h"

/* A kernel would have two more: blocks and threads. */
dso_status run(DLTensor *x, int64_t n) {
  return dso_call("scale", NULL, dso_tensor(x), dso_float(2.0), dso_int(n));
}

dso_status total(const float *x, int64_t n, int64_t *out) {
  dso_any sum;
  for (int64_t i = 0; i < n; i++) {
    if (dso_call("host.add", &sum, dso_int(*out), dso_float(x[i]))) return -1;
    *out = sum.v_int64;
    dso_release(&sum);
  }
  return 0;
}

dso_status refuse(int code) {
  return code == 0 ? 0 : dso_raise("ValueError", "refused by host code");
}
"""
FUNCTIONS = {
    "run": "dso_status(DLTensor *x, int64_t n)",
    "total": "dso_status(const float *x, int64_t n, int64_t *out)",
    "refuse": "dso_status(int code)",
}


@pytest.fixture(scope="module", params=["c", "cc"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The host code as a packed library, in C and in C++."""
    source = SOURCE if request.param == "c" else f'extern "C" {{\n{SOURCE}\n}}'
    if request.param == "cc":
        source = '#include "dso_packer.h"\n' + source
    module = packer.CSourceModule(source, fmt=request.param, functions=FUNCTIONS)
    return packer.export_library(module, tmp_path_factory.mktemp("host") / "host.so")


def test_declared_function_calls_an_import(library) -> None:
    """A line of C; a dso_status gives None."""
    module = runtime.load(library)

    def scale(x: runtime.Tensor, factor: float, n: int) -> None:
        np.asarray(x)[:n] *= factor

    importing(module, scale=scale)
    array = np.arange(4, dtype="float32")
    assert module["run"](array, 4) is None
    np.testing.assert_array_equal(array, [0, 2, 4, 6])
    assert module["run"].signature == "dso_status run(DLTensor *x, int64_t n)"


def test_error_of_an_import_is_that_of_the_call(library) -> None:
    """The status carries it through; so does one that host code raises."""
    module = runtime.load(library)
    with pytest.raises(runtime.FunctionNotFoundError, match="'scale'"):
        module["run"](np.zeros(1, "float32"), 1)
    with pytest.raises(ValueError, match="^refused by host code$"):
        module["refuse"](3)
    assert module["refuse"](0) is None


TVM_FFI = """
import json, sys, numpy, tvm_ffi
@tvm_ffi.register_global_func("host.add")
def add(total, x): return total + int(x)
total = tvm_ffi.load_module(sys.argv[1])["total"]
out = numpy.zeros(1, "int64")
total(numpy.arange(5, dtype="float32"), 5, out)
@tvm_ffi.register_global_func("host.add", override=True)
def fail(total, x): raise KeyError("theirs")
try:
    tvm_ffi.load_module(sys.argv[1])["total"](numpy.ones(1, dtype="float32"), 1, out)
except KeyError as error:
    out[0] += 100
print(json.dumps(int(out[0])))
"""


def test_same_library_calls_in_a_real_tvm_ffi(library) -> None:
    """The header knows nothing of who loads: context symbols are filled by either."""
    assert run_python(TVM_FFI, str(library)) == 110


def test_status_is_a_result_only() -> None:
    """As a parameter it would be an int like others."""
    for text in ("void(dso_status s)", "void(dso_status *s)", "dso_status *(void)"):
        with pytest.raises(
            runtime.ExportError, match="dso_status is only a result type|expected void"
        ):
            parse_functions({"f": text}, module="m")


def test_llvm_function_with_a_status(tmp_path) -> None:
    """An i32 that is not 0 is a failure; a failure without a raised error is reported as such."""
    ir = "define i32 @f(i32 %x) { ret i32 %x }"
    module = packer.LLVMModule(ir, functions={"f": "dso_status(int x)"})
    function = runtime.load(packer.export_library(module, tmp_path / "f.so"))["f"]
    assert function(0) is None
    with pytest.raises(RuntimeError, match="f: returned -1 without raising"):
        function(5)
