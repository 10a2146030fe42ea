"""A model before and after a rewrite: from text, with random inputs, compared."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_ir as ir
from onnx import numpy_helper, parser, shape_inference

from .fused import Array, run, run_original

Change = Callable[[ir.Model], Any]


class Rewritten(NamedTuple):
    """A model after rewrites."""

    model: ir.Model
    result: Any  # of the last rewrite

    @property
    def kinds(self) -> list[str]:
        """The operators in order, as in "dso.Conv"."""
        return [
            f"{node.domain}.{node.op_type}" if node.domain else node.op_type
            for node in self.model.graph
        ]

    def node(self, kind: str) -> ir.Node:
        """Return the only node of this kind."""
        (found,) = (node for node in self.model.graph if node.op_type == kind)
        return found

    def attributes(self, kind: str) -> dict[str, Any]:
        """Return the attributes of the only node of this kind."""
        return {key: item.value for key, item in self.node(kind).attributes.items()}


def make(text: str, weights: Mapping[str, Array] | None = None) -> onnx.ModelProto:
    """Parse a graph such as ``(float[2,3] x) => (float[2,3] y) { y = Relu(x) }``.

    Weights are constants by name; weights that the text does not name are left out. Every value has
    a type and a shape afterwards.
    """
    model = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 23]> g {text}')
    for name, array in (weights or {}).items():
        if not re.search(rf"\b{name}\b", text):
            continue
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    for index, node in enumerate(model.graph.node):
        node.name = node.name or f"{node.op_type}_{index}"
    model = shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    onnx.checker.check_model(model)
    return model


def random_inputs(model: onnx.ModelProto, batch: int = 2, seed: int = 3) -> dict[str, Array]:
    """Make random inputs; a symbolic extent is `batch`."""
    random = np.random.default_rng(seed)
    weights = {item.name for item in model.graph.initializer}
    found = {}
    for item in model.graph.input:
        if item.name not in weights:
            extents = [
                dim.dim_value if dim.HasField("dim_value") else batch
                for dim in item.type.tensor_type.shape.dim
            ]
            kind = onnx.helper.tensor_dtype_to_np_dtype(item.type.tensor_type.elem_type)
            found[item.name] = _random(random, kind, extents)
    return found


def _random(random: np.random.Generator, kind: np.dtype[Any], extents: list[int]) -> Array:
    if kind in (np.int8, np.uint8):
        return random.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, extents, dtype=kind)
    is_number = kind.kind not in "bi"
    return (random.normal(size=extents) if is_number else random.integers(0, 2, extents)).astype(
        kind
    )


def rewritten(
    model: onnx.ModelProto, *changes: Change, batch: int = 2, tolerance: float = 1e-5
) -> Rewritten:
    """Apply rewrites, and compare the outputs with ONNX Runtime's for the model before.

    The difference is at most `tolerance` of the greatest element of each output. The shapes and
    types of its outputs stay the same.
    """
    inputs = random_inputs(model, batch)
    after = ir.from_proto(model)
    after.graph.opset_imports.setdefault("dso", 1)
    result = None
    for change in changes:
        result = change(after)
    check(after)
    for expected, found in zip(run_original(model, inputs), run(after, inputs), strict=True):
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        if expected.dtype.kind == "f":
            finite = expected[np.isfinite(expected)]
            scale = max(float(np.abs(finite).max(initial=0)), 1e-30)
            np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * scale)
        else:
            np.testing.assert_array_equal(found, expected)
    return Rewritten(after, result)


def unchanged(model: onnx.ModelProto, change: Change) -> bool:
    """Return True if a rewrite changes nothing in a model, and says so."""
    after = ir.from_proto(model)
    before = ir.to_proto(after)
    return bool(change(after) == 0 and ir.to_proto(after) == before)


def check(model: ir.Model) -> None:
    """Compare the graph with what the rest of the importer needs of it."""
    made = set(model.graph.inputs) | set(model.graph.initializers.values())
    names = [value.name for value in made]
    for node in model.graph:
        for value in node.inputs:
            assert value is None or value in made, f"{node.name} reads {value} before it exists"
        for value in node.outputs:
            assert value.name
            assert value.dtype is not None, value
            assert value.shape is not None, value
            made.add(value)
            names.append(value.name)
    assert len(names) == len(set(names))
    assert all(value in made for value in model.graph.outputs)


def named(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int | str]]) -> onnx.ModelProto:
    """Give values shapes with symbolic extents, which inference does not know; as `read` does."""
    for item in [*model.graph.value_info, *model.graph.output]:
        if item.name in shapes:
            kind = item.type.tensor_type.elem_type
            item.CopyFrom(onnx.helper.make_tensor_value_info(item.name, kind, shapes[item.name]))
    return model
