"""Models of ONNX-ML: a graph of rows becomes steps and forests.

The last output has the scores: nodes that only others need are dropped, and so are labels of
classes and ZipMap. A value has one range of columns for each row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from packer import ExportError

from ..forest import Forest
from ..steps import Columns, Steps
from . import onnx_trees
from .expecting import expecting
from .onnx_ensemble import read_ensemble
from .onnx_ml_ops import FLOATS, ML_OPS
from .onnx_ops import OPS, rounded

_OPS = OPS | ML_OPS
_FORESTS = (*onnx_trees.NODES, "TreeEnsemble")
_LABEL = "a label of classes"
# TensorProto.DataType of a graph's inputs; float32 counts no integers.
_TYPES = {1: "float32", 11: "float64", **dict.fromkeys((6, 7, 9), "float64")}


def is_model(first: bytes) -> bool:
    """Return True if a file begins with the names of the operators, or with a version of ONNX."""
    names = (*onnx_trees.NODES, "ai.onnx.ml")
    return first[:1] == b"\x08" or any(name.encode() in first for name in names)


def from_object(model: Any, where: str) -> list[Forest | Steps]:
    """Read a ModelProto."""
    with expecting(where, "a graph of ONNX-ML"):
        versions = {one.domain: one.version for one in model.opset_import}
        return _Graph(model.graph, versions.get("ai.onnx.ml", 1), where).parts()


def from_bytes(data: bytes, where: str) -> list[Forest | Steps]:
    """Read the bytes of a model file."""
    import onnx
    from google.protobuf.message import DecodeError

    try:
        return from_object(onnx.load_model_from_string(data), where)
    except DecodeError as error:
        raise ExportError(f"{where}: {error}, expected an ONNX model") from error


class _Graph:
    """The values of a graph, node by node; `version` is of the operators of ONNX-ML."""

    def __init__(self, graph: Any, version: int, where: str) -> None:
        from onnx import numpy_helper

        self._graph, self._version, self._where = graph, version, where
        self._parts: list[Forest | Steps] = []
        self._values: dict[str, Any] = {
            one.name: numpy_helper.to_array(one) for one in graph.initializer
        }
        inputs = [one for one in graph.input if one.name not in self._values]
        types = {_TYPES.get(one.type.tensor_type.elem_type, "") for one in inputs}
        if not inputs or "" in types:
            raise ExportError(f"{where}: the type of an input, expected numbers; texts are refused")
        widths = [_width(one, graph) for one in inputs]
        self.steps = Steps("onnx", sum(widths), "float64" if len(types) > 1 else types.pop())
        if len(inputs) > 1:
            self.steps.feature_names = [one.name for one in inputs]
        at = 0
        for one, width in zip(inputs, widths, strict=True):
            self._values[one.name] = self.steps.row.part(at, width)
            at += width

    def parts(self) -> list[Forest | Steps]:
        """Return the parts up to the last output."""
        name = self._graph.output[-1].name
        for node in _needed(self._graph.node, name):
            self._add(node)
        found = self._columns(name, "the last output")
        if found != self.steps.row or not self._parts:
            self.steps.out = found
            self._parts.append(self.steps)
        return self._parts

    def _add(self, node: Any) -> None:
        from onnx import helper

        where = f"{self._where}: {node.op_type} {node.name or node.output[0]!r}"
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if all(isinstance(self._values.get(x, None), np.ndarray) for x in node.input if x):
            found = _folded(node, [self._values[x] for x in node.input if x])
        elif node.op_type in _FORESTS:
            found = self._add_forest(node, attributes, where)
        elif node.op_type in _OPS:
            inputs = [self._values.get(x) if x else None for x in node.input]
            if any(x is None and name for x, name in zip(inputs, node.input, strict=True)):
                text = f"an input is {_LABEL}, or is from before the trees, expected a number"
                raise ExportError(f"{where}: {text}")
            with expecting(where, "the attributes of ONNX"):
                found = _OPS[node.op_type](
                    self.steps, inputs, {**attributes, "version": self._version}
                )
                found = rounded(self.steps, found) if node.op_type in FLOATS else found
        else:
            raise ExportError(f"{where}: not supported, expected one of {', '.join(sorted(_OPS))}")
        # Classifiers have the label first.
        self._values[node.output[-1 if node.op_type.endswith("Classifier") else 0]] = found

    def _add_forest(self, node: Any, attributes: Mapping[str, Any], where: str) -> Columns:
        """Add a forest; steps begin again with its scores."""
        rows = self._columns(node.input[0], where)
        with expecting(where, "the attributes of ONNX"):
            if node.op_type == "TreeEnsemble":
                forest = read_ensemble(attributes, rows.width, where)
            else:
                forest = onnx_trees.read_node(attributes, node.op_type, rows.width, where)
        if rows != self.steps.row:
            self.steps.out = rows
            self._parts.append(self.steps)
        self._parts.append(forest)
        kept = {name: x for name, x in self._values.items() if isinstance(x, np.ndarray)}
        self._values = kept
        self.steps = Steps("onnx", forest.num_scores, forest.dtype)
        self.steps.classes = forest.classes
        return self.steps.row

    def _columns(self, name: str, what: str) -> Columns:
        found = self._values.get(name)
        if not isinstance(found, Columns):
            text = f"{what} is {_LABEL}, a constant, or from before the trees"
            raise ExportError(f"{self._where}: {text}, expected scores")
        return found


def _width(value: Any, graph: Any) -> int:
    """Return the number of columns of an input: of its type, or of the trees that read it."""
    dims = value.type.tensor_type.shape.dim
    if len(dims) > 2:
        raise ValueError(f"input {value.name!r} has {len(dims)} axes, expected rows")
    if len(dims) and dims[-1].dim_value:
        return int(dims[-1].dim_value)
    ids = [
        max(a.ints, default=0)
        for node in graph.node
        if value.name in node.input
        for a in node.attribute
        if a.name == "nodes_featureids"
    ]
    if not ids:
        raise ValueError(f"input {value.name!r} has no number of columns")
    return int(max(ids)) + 1


def _needed(nodes: Sequence[Any], name: str) -> list[Any]:
    """Return the nodes that a value is made of, in order."""
    needed, found = {name}, []
    for node in reversed(nodes):
        if needed & set(node.output):
            found.append(node)
            needed |= set(node.input)
    return found[::-1]


def _folded(node: Any, inputs: Sequence[Any]) -> Any:
    """Return the value of a node of constants."""
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    names = [name for name in node.input if name]
    ends = [helper.make_empty_tensor_value_info(name) for name in (*names, node.output[0])]
    graph = helper.make_graph([node], "constant", ends[:-1], ends[-1:])
    versions = [helper.make_opsetid("", 18), helper.make_opsetid("ai.onnx.ml", 3)]
    model = helper.make_model(graph, opset_imports=versions)
    found = ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))
    return np.asarray(found[0])
