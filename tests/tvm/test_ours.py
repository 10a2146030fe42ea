"""Libraries exported with format="tvm-ffi" load and run in real apache-tvm."""

from __future__ import annotations

import json

import numpy as np
import pytest

import packer
import runtime

from .conftest import TVM_PYTHON

SOURCE = """
#include <stdint.h>
void add_one(const float *x, float *y, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i] + 1;
}
const char *greet(const char *name) { return name; }
double half(double x) { return x / 2; }
"""
FUNCTIONS = {
    "add_one": "void(const float *x, float *y, int64_t n)",
    "greet": "const char *(const char *name)",
    "half": packer.FunctionDeclaration("double(double x)", doc='Half of "x".\n\nNot more.'),
}
CONSTANTS = """
static const float *weights;
static int times;
void __init_scaled(const float *w, const float *bias) { weights = w; times++; (void)bias; }
float scaled(float x) { return x * weights[1] * times; }
"""
CALLER = """
#include "dso_packer.h"
dso_status ask(const char *name, int64_t n) {
  return dso_call(name, NULL, dso_string("hello"), dso_int(n));
}
dso_status ask_float(const char *name, double x, double *y) {
  dso_any answer;
  if (dso_call(name, &answer, dso_float(x))) return -1;
  *y = answer.v_float64;
  return 0;
}
"""


def _export(module, path, **options) -> None:
    packer.export_library(module, path, format="tvm-ffi", **options)


@pytest.fixture(scope="module")
def theirs(tmp_path_factory, compile_library, run_script):
    """Return the results of real TVM for the libraries of this file."""
    folder = tmp_path_factory.mktemp("ours")
    archive = compile_library("int twice(int x) { return 2 * x; }", "-c")
    plain = packer.CSourceModule(SOURCE, functions=FUNCTIONS)
    plain.import_module(packer.StaticLibraryModule(archive, functions={"twice": "int(int x)"}))
    _export(plain, folder / "plain.so", entry="half")
    _export(_constants(), folder / "constants.so")
    functions = {
        "ask": "dso_status(const char *name, int64_t n)",
        "ask_float": "dso_status(const char *name, double x, double *y)",
    }
    _export(packer.CSourceModule(CALLER, functions=functions), folder / "caller.so")
    with_kernels = packer.CSourceModule(SOURCE, functions=FUNCTIONS)
    with_kernels.import_module(runtime.DeviceModule("opencl", b"", "cl", {}))
    _export(with_kernels, folder / "with_kernels.so")
    return json.loads(run_script(TVM_PYTHON, "run_ours.py", folder).splitlines()[-1])


def _constants() -> runtime.Module:
    root = runtime.ConstLoaderModule(
        {"w": np.array([2, 3], "float32"), "b": np.ones(1, "float32")}, {"scaled": ["w", "b"]}
    )
    functions = {
        "__init_scaled": "void(const float *w, const float *bias)",
        "scaled": "float(float x)",
    }
    root.import_module(packer.CSourceModule(CONSTANTS, functions=functions))
    return root


def test_functions_take_and_return_the_same_values_as_here(theirs) -> None:
    """Arrays of NumPy and tensors of TVM, text of both lengths, the entry; static libraries too."""
    plain = theirs["plain"]
    assert plain["kinds"] == ["library"]
    assert (plain["y"], plain["entry"], plain["static"]) == ([1, 2, 3, 4], 1.5, 42)
    assert plain["text"] == ["hi", "hello, world"]
    assert "expected an int, found an int beyond int64;" in plain["too large"]
    assert plain["refused"].startswith("TypeError: add_one: argument 2 'y' (float *): expected")


def test_their_api_reports_types_and_docs(theirs) -> None:
    """get_function_metadata and get_function_doc."""
    plain = theirs["plain"]
    assert plain["schema"] == "Callable[[Tensor | None, Tensor | None, int], None]"
    assert plain["doc"] == 'Half of "x".\n\nNot more.'
    assert plain["no doc"] is None


def test_their_const_loader_initialises_our_host_code(theirs) -> None:
    """It passes all arrays in one call, once, and expects 0."""
    constants = theirs["constants"]
    assert constants["kinds"] == ["const_loader", ["library"]]
    assert constants["scaled"] == [6, 9]
    assert constants["constants"] == {"w": [2, 3], "b": [1]}


def test_host_code_calls_functions_of_their_tree(theirs) -> None:
    """The header's dso_call, of global functions and of modules imported after the load."""
    caller = theirs["caller"]
    assert caller["told"] == [["hello", 3]]
    assert "half" in caller["absent"]
    assert caller["y"] == [2.5]
    assert caller["refused"].startswith("TypeError: greet: argument 1")


def test_a_type_that_their_build_lacks_is_named(theirs) -> None:
    """The wheel has no OpenCL: the error names the missing loader."""
    assert "ffi.Module.load_from_bytes.opencl" in theirs["with_kernels"]
