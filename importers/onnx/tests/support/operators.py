"""Graphs of the domain ``dso``, lowered and run operator by operator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx_ir as ir

import packer
import packer.operators
import runtime
from dso_packer_onnx.layout import choose_layouts
from dso_packer_onnx.lower.fast import lower_fast
from dso_packer_onnx.operator import Operator, shape_of, stored_shape

BATCH = 3  # the extent "batch"


def graph_of(text: str, **constants: np.ndarray) -> ir.Graph:
    """Parse ONNX's text form; the names of `constants` become initialisers."""
    graph = ir.from_onnx_text(text).graph
    for value in list(graph.inputs):
        if value.name in constants:
            value.const_value = ir.tensor(constants[value.name], name=value.name)
            graph.inputs.remove(value)
            graph.initializers[value.name] = value
    return graph


def run(graph: ir.Graph, path: Path, **inputs: np.ndarray) -> list[np.ndarray]:
    """Choose layouts, lower each node, and call the functions in order."""
    choose_layouts(graph)
    operators = [lower_fast(node) for node in graph]
    library = load(operators, path)
    tensors = {id(value): inputs[value.name] for value in graph.inputs if value.name in inputs}
    for operator in operators:
        call(library, operator, tensors)
    return [tensors[id(value)] for value in graph.outputs]


def load(operators: list[Operator], path: Path) -> runtime.Module:
    """Export operators as one library."""
    root = None
    for operator in {operator.name: operator for operator in operators}.values():
        module = packer.CSourceModule(
            operator.code,
            functions={operator.name: "auto"},
            include=[packer.operators.INCLUDE],
            options=["-O2", "-march=native", "-Wall", "-Wextra"],
        )
        if root is None:
            root = module
        else:
            root.import_module(module)
    names = {part for operator in operators for part in operator.parts}
    assert root is not None
    for module in packer.operators.modules(*sorted(names), options=["-march=native"]):
        root.import_module(module)
    return runtime.load(packer.export_library(root, path))


def call(library: runtime.Module, operator: Operator, tensors: dict[int, np.ndarray]) -> None:
    """Call one operator; memory that it does not write is NaN."""
    args = []
    for value in operator.inputs:
        if id(value) not in tensors:
            assert value.const_value is not None
            tensors[id(value)] = np.ascontiguousarray(value.const_value.numpy())
        args.append(tensors[id(value)])
    for value in operator.outputs:
        shape = [BATCH if isinstance(e, str) else e for e in stored_shape(value)]
        tensors[id(value)] = np.full(shape, np.nan, np.float32)
        args.append(tensors[id(value)])
    if operator.workspace:
        nbytes = operator.workspace * (BATCH if operator.takes_batch else 1)
        args.append(np.full(nbytes // 4, np.nan, np.float32))
    if operator.takes_batch:
        args.insert(0, BATCH)
    library[operator.name](*args)


__all__ = ["BATCH", "call", "graph_of", "load", "run", "shape_of"]
