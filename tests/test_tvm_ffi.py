"""Real tvm_ffi loads our exports; both runtimes use one file in one process."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

from .support import needs
from .support.process import run_python

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
    "half": "double(double x)",
}

THEIRS = """
import json, sys, numpy, tvm_ffi
m = tvm_ffi.load_module(sys.argv[1])
x, y = numpy.arange(4, dtype='float32'), numpy.zeros(4, 'float32')
m['add_one'](x, y, 4)
try: m['add_one'](x, y.astype('int32'), 4)
except TypeError as error: raised = str(error)
theirs = [y.tolist(), m['greet']('hello, world'), m['greet']('hi'), m['half'](3), raised]
"""
OURS = """
import json, sys, numpy, runtime
m = runtime.load(sys.argv[1])
x, y = numpy.arange(4, dtype='float32'), numpy.zeros(4, 'float32')
m['add_one'](x, y, 4)
try: m['add_one'](x, y.astype('int32'), 4)
except TypeError as error: raised = str(error)
ours = [y.tolist(), m['greet']('hello, world'), m['greet']('hi'), m['half'](3), raised]
"""


@pytest.fixture(scope="module", params=["tvm", "tvm-ffi"])
def library(tmp_path_factory, request):
    """A packed library with functions of three kinds, of either dialect."""
    module = packer.CSourceModule(SOURCE, functions=FUNCTIONS)
    path = tmp_path_factory.mktemp("tvm_ffi") / "lib.so"
    return packer.export_library(module, path, format=request.param)


def _assert_results(results) -> None:
    numbers, long, short, half, raised = results
    assert (numbers, long, short, half) == ([1, 2, 3, 4], "hello, world", "hi", 1.5)
    assert "argument 2 'y'" in raised
    assert "int32[4] on cpu" in raised


def test_our_library_runs_in_real_tvm_ffi(library) -> None:
    """NumPy arrays in, results out, and an error raised inside arrives as an exception."""
    code = THEIRS + "import sys; assert 'runtime' not in sys.modules\nprint(json.dumps(theirs))"
    _assert_results(run_python(code, str(library)))


@pytest.mark.parametrize(
    "order", [(THEIRS, OURS), (OURS, THEIRS)], ids=["theirs first", "ours first"]
)
def test_both_runtimes_use_one_file_in_one_process(library, order) -> None:
    """One dlopen handle, one set of pointer variables; errors arrive on either side, twice."""
    code = "".join(order) * 2 + "print(json.dumps([theirs, ours]))"
    for results in run_python(code, str(library)):
        _assert_results(results)


def test_importing_tvm_ffi_between_load_and_call_changes_nothing(library) -> None:
    """Nothing of the core is visible to it, nothing of it to us."""
    code = OURS.replace("m['add_one'](x, y, 4)\ntry", "import tvm_ffi\nm['add_one'](x, y, 4)\ntry")
    _assert_results(run_python(code + "print(json.dumps(ours))", str(library)))


def test_torch_tensors_reach_our_functions_through_tvm_ffi(library) -> None:
    """Another library's tensors, as they are."""
    needs.module("torch", "torch")
    code = """
import json, sys, torch, tvm_ffi
x, y = torch.arange(4, dtype=torch.float32), torch.zeros(4)
tvm_ffi.load_module(sys.argv[1])["add_one"](x, y, 4)
print(json.dumps(y.tolist()))
"""
    assert run_python(code, str(library)) == [1, 2, 3, 4]


def test_tvm_ffis_api_reports_types_and_docs(tmp_path) -> None:
    """Every code of a declaration, in dialect tvm-ffi: TVM FFI prints the text that it parses."""
    source = """
#include <stdint.h>
#include "dso_abi.h"
uint8_t many(int8_t a, uint64_t b, _Bool c, float d, const char *e, double *f, DLTensor *g) {
  return (uint8_t)(a + (int)b + c + (int)d + (e != 0) + (f != 0) + (g != 0));
}
void none(void) {}
"""
    doc = 'Says "many"??/\n\nin \u00fcber two lines.'
    declared = "uint8_t(int8_t, uint64_t, bool, float, const char *, double *, DLTensor *)"
    functions = {
        "many": packer.FunctionDeclaration(declared, doc=doc),
        "none": "void()",
    }
    module = packer.CSourceModule(source, functions=functions)
    path = packer.export_library(module, tmp_path / "lib.so", format="tvm-ffi")
    code = """
import json, sys, tvm_ffi
from tvm_ffi.core import TypeSchema
m = tvm_ffi.load_module(sys.argv[1])
def schema_of(f): return str(TypeSchema.from_json_str(m.get_function_metadata(f)["type_schema"]))
docs = [m.get_function_doc("many"), m.get_function_doc("none"), m.get_function_metadata("nothing")]
print(json.dumps([schema_of("many"), schema_of("none"), *docs]))
"""
    assert run_python(code, str(path)) == [
        "Callable[[int, int, bool, float, str, Tensor | None, Tensor], int]",
        "Callable[[], None]",
        doc,
        None,
        None,
    ]
    assert runtime.load(path).function_names() == ["many", "none"]


CONSTANTS = """
static const float *weights;
void __init_scaled(const float *w) { weights = w; }
float scaled(float x) { return x * weights[1]; }
void __init_free(const float *w) { (void)w; }
float free_of(float x) { return x; }
"""


def _with_constants(folder: Path, **options: Any) -> Path:
    root = runtime.ConstLoaderModule({"w": np.array([2, 3], "float32")}, {"scaled": ["w"]})
    root.import_module(packer.CSourceModule(CONSTANTS, functions="auto"))
    return packer.export_library(root, folder / "constants.so", **options)


@pytest.mark.parametrize("legacy_calls", [False, True])
def test_a_function_without_its_constants_raises(tmp_path, legacy_calls) -> None:
    """tvm_ffi does not see the tree of a default library, so the C code would read NULL."""
    code = (
        "import json, sys, tvm_ffi\nm = tvm_ffi.load_module(sys.argv[1])\n"
        "try: m['scaled'](2.0)\nexcept RuntimeError as error: print(json.dumps(str(error)))\n"
    )
    path = _with_constants(tmp_path, output=packer.Output(legacy_calls=legacy_calls))
    text = run_python(code, str(path))
    assert text.startswith("scaled: it has no constants yet, which the library's tree contains; ")
    assert "format='tvm-ffi'" in text
    loaded = runtime.load(path)
    assert [loaded["scaled"](2.0), loaded["scaled"](3.0)] == [6, 9]
    with pytest.raises(RuntimeError, match="^scaled: it has no constants yet"):
        runtime.load(shutil.copy(path, tmp_path / "b.so")).imported_modules[0]["scaled"](2.0)


def test_an_initialiser_that_a_caller_calls_counts(tmp_path) -> None:
    """Also a function that no const_loader lists is called as before."""
    code = (
        "import json, sys, numpy, tvm_ffi\nm = tvm_ffi.load_module(sys.argv[1])\n"
        "w = numpy.array([2, 3], 'float32')\nfirst = m['free_of'](1.0)\nm['__init_scaled'](w)\n"
        "print(json.dumps([first, m['scaled'](2.0)]))"
    )
    assert run_python(code, str(_with_constants(tmp_path))) == [1.0, 6.0]
