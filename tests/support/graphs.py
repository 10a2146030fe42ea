"""Graph JSON for tests, and the library with the operators that it calls."""

from __future__ import annotations

import json
from typing import Any

import packer
import runtime

OPERATORS = """
#include <stdint.h>
#include <dso_packer.h>
void add(const float *a, const float *b, float *c) {
    for (int i = 0; i < 6; i++) c[i] = a[i] + b[i];
}
void increase(float *a, float *b) { for (int i = 0; i < 6; i++) b[i] = a[i] += 1; }
void rank(DLTensor *a, DLTensor *b) { (void)a; *(float *)b->data = (float)a->ndim; }
"""
FUNCTIONS = {
    "add": "void(const float *a, const float *b, float *c)",
    "increase": "void(float *a, float *b)",
    "rank": "void(DLTensor *a, DLTensor *b)",
}


def host() -> packer.CSourceModule:
    """The operators: add, increase (in place, and as result), rank (of its input)."""
    return packer.CSourceModule(OPERATORS, functions=FUNCTIONS)


def null(name: str) -> dict[str, Any]:
    """An input."""
    return {"op": "null", "name": name, "inputs": []}


def op(name: str, function: str, inputs: list[int], **attrs: Any) -> dict[str, Any]:
    """An operator with one output."""
    counts = {"num_inputs": str(len(inputs)), "num_outputs": "1", "flatten_data": "0"}
    return {
        "op": "tvm_op",
        "name": name,
        "attrs": {"func_name": function, **counts, **attrs},
        "inputs": [[i, 0, 0] for i in inputs],
    }


def graph(
    nodes: list[dict[str, Any]],
    heads: list[int],
    shapes: list[list[int]] | None = None,
    storage_ids: list[int] | None = None,
) -> dict[str, Any]:
    """A graph of nodes with one output each; float32[2, 3] in separate memory unless stated."""
    count = len(nodes)
    return {
        "nodes": nodes,
        "arg_nodes": [i for i, node in enumerate(nodes) if node["op"] == "null"],
        "heads": [[i, 0, 0] for i in heads],
        "node_row_ptr": list(range(count + 1)),
        "attrs": {
            "dltype": ["list_str", ["float32"] * count],
            "shape": ["list_shape", shapes or [[2, 3] for _ in nodes]],
            "storage_id": ["list_int", storage_ids or list(range(count))],
        },
    }


def sum_graph() -> dict[str, Any]:
    """``total = (x + w) + w``."""
    nodes = [null("x"), null("w"), op("first", "add", [0, 1]), op("total", "add", [2, 1])]
    return graph(nodes, [3])


def factory(
    fields: dict[str, Any], params: dict[str, Any], *imports: runtime.Module
) -> runtime.GraphExecutorFactory:
    """A factory with its imports."""
    made = runtime.GraphExecutorFactory(json.dumps(fields), params)
    for module in imports:
        made.import_module(module)
    return made
