"""Graph: the cost that an executor adds to each operator, with 1,000 nearly empty operators."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from timeit import Timer
from typing import Any

import numpy as np
from libdso import build_program
from library import build_library, operators
from measure import Case, Launcher, Sample, interleave
from table import Table

import packer
import runtime

ROUNDS = 15
OPERATORS = 1000
RUNS = 200
SHAPE = [1024]


def tables(folder: Path, launch: Launcher) -> list[Table]:
    """Measure one run of the graph, per operator."""
    library = runtime.load(build_library(folder / "graph.so"))
    array = np.zeros(SHAPE, np.float32)
    model, program = build_model(folder), build_program(folder)
    executor = runtime.graph_executor.create(chain(), library)
    executor.set_input("x", array)
    pair = library["pair"]

    def from_python() -> None:
        """Call each operator from Python, one by one."""
        for _ in range(OPERATORS):
            pair(array, array)

    def from_c() -> Sample:
        return {"seconds": int(launch([program, "graph", model]).output) / 1e9 / OPERATORS}

    cases = [
        Case("calls from Python (reference)", _per_operator(from_python)),
        Case("GraphExecutor.run", _per_operator(executor.run)),
        Case("the executor of libdso", from_c),
        Case("GraphExecutor.profile", _per_operator(lambda: executor.profile(1))),
    ]
    note = "aim: run at most 200 ns per operator, its own checks of two arrays included"
    rows = interleave(cases, ROUNDS)
    return [Table(f"graph: {OPERATORS} operators, each", rows, "ns", notes=(note,))]


def build_model(folder: Path) -> Path:
    """Export the graph with its operators and its input."""
    made = runtime.GraphExecutorFactory(chain(), {"x": np.zeros(SHAPE, np.float32)})
    made.import_module(operators())
    return packer.export_library(made, folder / "graph_model.so")


def chain() -> str:
    """The graph: each operator reads the output of the one before; two storages alternate."""
    attrs = {"func_name": "pair", "num_inputs": "1", "num_outputs": "1", "flatten_data": "0"}
    nodes: list[dict[str, Any]] = [{"op": "null", "name": "x", "inputs": []}]
    for i in range(OPERATORS):
        op = {"op": "tvm_op", "name": f"op{i}", "attrs": attrs, "inputs": [[i, 0, 0]]}
        nodes.append(op)
    count = OPERATORS + 1
    fields = {
        "nodes": nodes,
        "arg_nodes": [0],
        "heads": [[OPERATORS, 0, 0]],
        "node_row_ptr": list(range(count + 1)),
        "attrs": {
            "shape": ["list_shape", [SHAPE] * count],
            "dltype": ["list_str", ["float32"] * count],
            "storage_id": ["list_int", [0, *(1 + i % 2 for i in range(OPERATORS))]],
        },
    }
    return json.dumps(fields)


def _per_operator(run: Callable[[], object]) -> Callable[[], Sample]:
    timer = Timer(run)
    return lambda: {"seconds": timer.timeit(RUNS) / RUNS / OPERATORS}
