"""Real TVM of 2024 (0.17) and this runtime: each runs the other's libraries."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import packer
import runtime

from ..support import graphs
from ..support.dso_script import run_by_c, tensor, text_of
from .conftest import LEGACY_PYTHON, RunScript

SOURCE = """
#include "dso_packer.h"
#include <string.h>
int64_t shown(int64_t x) { return x; }
int64_t add(int64_t a, int64_t b) { return shown(a) + b; }
int64_t twice(int64_t a) { return add(a, a); }
double half(double x) { return x / 2; }
_Bool odd(int n) { return n & 1; }
const char *greet(const char *name) { return strcmp(name, "none") ? name : 0; }
void add_one(const float *x, float *y, int64_t n) {
  for (int64_t i = 0; i < n; i++) y[i] = x[i] + 1;
}
dso_status checked(int n) { return n == 7 ? 0 : dso_raise("ValueError", "not seven"); }
double each(double (*f)(double x, const char *name), int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum += f(i, "n");
  return sum;
}
"""
CONSTANTS = """
static const float *weights;
static int times;
void __init_scaled(const float *w, const float *bias) { weights = w; times++; (void)bias; }
float scaled(float x) { return x * weights[1] * times; }
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, run_script: RunScript) -> tuple[Path, Any]:
    """The folder of TVM's libraries and objects, and their results there."""
    folder = tmp_path_factory.mktemp("theirs")
    return folder, json.loads(run_script(LEGACY_PYTHON, "make_legacy.py", folder).splitlines()[-1])


@pytest.fixture(scope="module")
def ours(
    tmp_path_factory: pytest.TempPathFactory, run_script: RunScript, made: tuple[Path, Any]
) -> Any:
    """Run packer's libraries in TVM, each exported with `legacy_calls`."""
    folder = tmp_path_factory.mktemp("legacy")
    functions = {"*": "auto", "shown": False}
    plain = packer.CSourceModule(SOURCE, functions=functions)
    packer.export_library(
        plain, folder / "plain.so", entry="half", output=packer.Output(legacy_calls=True)
    )
    root = runtime.ConstLoaderModule(
        {"w": np.array([2, 3], "float32"), "b": np.ones(1, "float32")}, {"scaled": ["w", "b"]}
    )
    root.import_module(packer.CSourceModule(CONSTANTS, functions="auto"))
    packer.export_library(root, folder / "constants.so", output=packer.Output(legacy_calls=True))
    nodes = [graphs.null("x"), graphs.null("w"), graphs.op("sum", "add", [0, 1])]
    described = json.dumps(graphs.graph(nodes, [2]))
    model = runtime.GraphExecutorFactory(described, {"w": np.full((2, 3), 0.5, "float32")})
    model.import_module(graphs.host())
    packer.export_library(model, folder / "graph.so", output=packer.Output(legacy_calls=True))
    packer.export_library(
        ahead(made[0]), folder / "ahead.so", output=packer.Output(legacy_calls=True)
    )
    return json.loads(run_script(LEGACY_PYTHON, "run_legacy.py", folder).splitlines()[-1])


def ahead(folder: Path) -> runtime.Module:
    """A model that TVM compiled ahead of time to objects, in a tree of packer."""
    root, metadata = runtime.AotExecutorFactory({}), runtime.MetadataModule()
    root.import_module(metadata)
    for path in folder.glob("ahead*.o"):
        is_metadata = b"get_c_metadata" in path.read_bytes()
        function = "get_c_metadata" if is_metadata else "tvmgen_default___tvm_main__"
        metadata.import_module(packer.StaticLibraryModule(path, functions={function: "packed"}))
    return root


def test_functions_take_and_return_the_same_values_as_here(ours) -> None:
    """Numbers, text, arrays, functions of Python, and the entry."""
    plain = ours["plain"]
    assert plain["numbers"] == [42, 8, 1.5, 1]
    assert plain["text"] == ["hi", "hello, world", "None"]
    assert (plain["y"], plain["entry"], plain["nothing"]) == ([1, 2, 3, 4], 1.5, None)
    assert (plain["each"], plain["seen"]) == (6.0, [[0.0, "n"], [1.0, "n"], [2.0, "n"]])


def test_errors_have_the_kinds_and_texts_of_here(ours) -> None:
    """Errors of the code, of the wrapper, and of functions that the code calls."""
    plain = ours["plain"]
    assert plain["checked"] == ["ValueError", "ValueError: not seven"]
    kind, text = plain["dtype"]
    assert kind == "TypeError"
    assert text.startswith("TypeError: add_one: argument 2 'y' (float *): expected a contiguous")
    assert plain["count"][1].startswith("TypeError: add: expected 2 arguments, found 1;")
    assert plain["failing"] == ["KeyError", "'mine'"]


def test_c_functions_are_not_found(ours) -> None:
    """A function that is not declared is hidden, so TVM cannot call it as a packed one."""
    assert ours["plain"]["hidden"] == ["AttributeError", "Module has no function 'shown'"]


def test_their_const_loader_and_graph_executor_call_our_host_code(ours) -> None:
    """Constants arrive once, one by one; a graph has its parameters."""
    assert ours["constants"] == {"kinds": ["const_loader", "library"], "scaled": [6, 9]}
    assert ours["graph"] == [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]


def test_their_libraries_have_their_results_here(
    made: tuple[Path, Any], run_script: RunScript
) -> None:
    """A parallel loop, and models of relay in the graph executor and compiled ahead of time."""
    folder, theirs = made
    assert json.loads(run_script(sys.executable, "run_their_legacy.py", folder)) == theirs


def test_their_aot_executor_runs_our_library(ours, made: tuple[Path, Any], tmp_path: Path) -> None:
    """Code that TVM compiled and packer linked: bit by bit in TVM, here, and in a C program."""
    folder, (_, _, theirs) = made
    assert ours["ahead"] == theirs
    packer.export_library(ahead(folder), tmp_path / "ahead.so")
    x = np.arange(384, dtype="float32").reshape(2, 3, 8, 8) / 384
    for path in (tmp_path / "ahead.so", folder / "ahead.so"):
        executor = runtime.load(path)["default"]()
        executor.run(x=x, index_1=np.arange(5))
        assert [executor.get_output(i).numpy().tolist() for i in range(3)] == theirs
        lines = [f"load {path}", "call 0 default", f"call 1 set_input s:x {tensor(x)}"]
        lines += [f"call 1 set_input s:index.1 {tensor(np.arange(5))}", "call 1 run"]
        printed = run_by_c(*lines, "call 1 get_output i:1")
        assert text_of(np.array(theirs[1], "int32")) in printed
