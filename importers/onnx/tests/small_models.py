"""Models of few nodes, as text that tests can read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

FLOAT, INT64, STRING = 1, 7, 8


def node(op_type: str, inputs: str, outputs: str, name: str = "", **attributes: Any) -> Any:
    """Make a node; inputs and outputs are names with a space between them."""
    return helper.make_node(op_type, inputs.split(), outputs.split(), name=name, **attributes)


def value(name: str, *shape: int | str | None, dtype: int = FLOAT) -> Any:
    """Make an input or output."""
    return helper.make_tensor_value_info(name, dtype, shape)


def unknown(name: str, dtype: int = FLOAT) -> Any:
    """Make an output without a shape."""
    return helper.make_tensor_value_info(name, dtype, None)


def weight(name: str, array: Any) -> Any:
    """Make an initialiser."""
    return numpy_helper.from_array(np.asarray(array), name)


def ones(name: str, *shape: int) -> Any:
    """Make an initialiser of ones."""
    return weight(name, np.ones(shape, np.float32))


def model(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    weights: Iterable[Any] = (),
    opset: int = 23,
    **rest: Any,
) -> onnx.ModelProto:
    """Make a model, which may be a wrong one."""
    graph = helper.make_graph(nodes, "graph", inputs, outputs, list(weights))
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10, **rest)


def relu() -> onnx.ModelProto:
    """One node, of shape (2, 3)."""
    return model([node("Relu", "x", "y", "act")], [value("x", 2, 3)], [value("y", 2, 3)])


def classifier(batch: int | str = 1) -> onnx.ModelProto:
    """A convolution, and a Reshape whose target the graph computes, as exporters write it."""
    nodes = [
        node("Conv", "x w", "c", "conv", pads=[1, 1, 1, 1]),
        node("Relu", "c", "r"),
        node("GlobalAveragePool", "r", "p"),
        node("Shape", "p", "s"),
        node("Gather", "s zero", "b"),
        node("Unsqueeze", "b axis", "b1"),
        node("Concat", "b1 rest", "target", axis=0),
        node("Reshape", "p target", "flat", "flatten"),
        node("Gemm", "flat fc", "y", "classify", transB=1),
    ]
    weights = [
        ones("w", 8, 3, 3, 3),
        ones("fc", 5, 8),
        weight("zero", np.int64(0)),
        weight("axis", np.array([0])),
        weight("rest", np.array([-1])),
    ]
    return model(nodes, [value("x", batch, 3, 4, 4)], [value("y", batch, 5)], weights)
