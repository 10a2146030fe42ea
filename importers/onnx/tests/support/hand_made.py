"""Graphs with operators written by hand, and the model that the importer's parts make of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

import packer
import runtime
from dso_packer_onnx.host import operator_modules
from dso_packer_onnx.operator import Operator
from dso_packer_onnx.program import make_program
from dso_packer_onnx.read.equations import Conditions
from dso_packer_onnx.record import KEY, graph_record
from dso_packer_onnx.variant import Variant
from dso_packer_onnx.weights import Weights

# Each output is made of all inputs; all arrays have n elements, which the code's first line says.
ADD = """
#include <stdint.h>
int32_t add_{n}(const float *a, const float *b, float *y) {{
  for (int64_t i = 0; i < {n}; i++) y[i] = a[i] + b[i];
  return 0;
}}
"""
SCALE = """
#include <stdint.h>
int32_t scale_{n}(int64_t batch, const float *x, const float *factor, float *y, void *workspace) {{
  float *copy = workspace;
  for (int64_t b = 0; b < batch; b++) {{
    for (int64_t i = 0; i < {n}; i++) copy[i] = x[b * {n} + i];
    for (int64_t i = 0; i < {n}; i++) y[b * {n} + i] = copy[i] * *factor;
  }}
  return 0;
}}
"""


def value(name: str, *shape: int | str, dtype: ir.DataType = ir.DataType.FLOAT) -> ir.Value:
    """A value of a graph; a symbolic extent is a name."""
    return ir.Value(name=name, shape=ir.Shape(shape), type=ir.TensorType(dtype))


def weight(name: str, array: Any) -> ir.Value:
    """A weight with an array of float32."""
    tensor = ir.tensor(np.asarray(array, np.float32), name=name)
    return ir.Value(
        name=name, shape=tensor.shape, type=ir.TensorType(tensor.dtype), const_value=tensor
    )


def operator(
    op: str, code: str, inputs: list[ir.Value], *outputs: ir.Value, **facts: Any
) -> Operator:
    """An operator, with a node whose outputs these values are."""
    ir.Node("", op, inputs, outputs=outputs, name=f"node of {outputs[0].name}")
    n = int(np.prod([e for e in outputs[0].shape if isinstance(e, int)]))
    name = f"{op.lower()}_{n}"
    return Operator(name, code.format(n=n), tuple(inputs), outputs, **facts)


def add(a: ir.Value, b: ir.Value, y: ir.Value) -> Operator:
    """``y = a + b``."""
    return operator("Add", ADD, [a, b], y, flops=int(np.prod(y.shape)))


def scale(x: ir.Value, factor: ir.Value, y: ir.Value) -> Operator:
    """``y = x * factor`` for a batch, by way of a workspace."""
    n = int(np.prod([e for e in y.shape if isinstance(e, int)]))
    return operator("Scale", SCALE, [x, factor], y, workspace=f"{4 * n}*batch", symbols=("batch",))


def view(x: ir.Value, y: ir.Value) -> Operator:
    """``y`` is ``x`` with another shape."""
    ir.Node("", "Reshape", [x], outputs=[y])
    return Operator("", "", (x,), (y,))


def variant(inputs: list[ir.Value], outputs: list[ir.Value], *operators: Operator) -> Variant:
    """A graph of these operators."""
    nodes = [node for one in operators if (node := one.outputs[0].producer()) is not None]
    values = [value for one in operators for value in one.inputs]
    weights = [v for v in dict.fromkeys([*values, *outputs]) if v.const_value is not None]
    graph = ir.Graph(inputs, outputs, nodes=nodes, initializers=weights, name="graph")
    return Variant(graph, operators, Conditions({}, ()))


def make_model(*variants: Variant) -> runtime.Module:
    """The tree of modules, as `from_onnx` makes it."""
    weights = Weights()
    for one in variants:
        read = (value for operator in one.operators for value in operator.inputs)
        for found in (*read, *one.graph.outputs):
            if found.const_value is not None:
                weights.add(found)
    model = make_program(variants, weights.names)
    for module in operator_modules([one for v in variants for one in v.operators]):
        model.import_module(module)
    functions = model.function_names()[-len(variants) :]
    record = graph_record(variants, functions, weights, {})
    model.import_module(weights.module({KEY: record}))
    return model


def load_model(folder: Path, *variants: Variant) -> runtime.Module:
    """The model, exported and loaded."""
    return runtime.load(packer.export_library(make_model(*variants), folder / "model.so"))
