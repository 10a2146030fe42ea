"""Networks that ONNX Runtime's tool quantised: computed with integers, with its results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import numpy_helper

import packer
import runtime

from .support.quantised import CNN, ENCODER, quantised, samples

NETWORKS = {"cnn": CNN, "encoder": ENCODER}


def step_of(model: onnx.ModelProto) -> float:
    """The step of the result: the scale of the last DequantizeLinear, or 0."""
    (last,) = (node for node in model.graph.node if "y" in node.output)
    weights = {item.name: item for item in model.graph.initializer}
    if last.op_type != "DequantizeLinear":
        return 0.0
    return float(numpy_helper.to_array(weights[last.input[1]]))


CASES = [("cnn", "QDQ"), ("cnn", "QOperator"), ("encoder", "QDQ"), ("encoder", "dynamic")]


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_results_are_those_of_onnx_runtime(name: str, kind: str, tmp_path: Path) -> None:
    """Within one step of the result, of the graph as it is written; float32 within 1e-5.

    ONNX Runtime's own optimizations change its results of the encoder by several steps. Weights are
    stored as integers, each with its name and values.
    """
    model = quantised(NETWORKS[name], kind, tmp_path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    module = packer.from_onnx(model)
    library = runtime.load(packer.export_library(module, tmp_path / "model.so"))
    for x in samples(model, 3):
        (expected,) = session.run(None, {"x": x})
        found = np.asarray(library["main"](x))
        limit = max(1.001 * step_of(model), 1e-5 * float(np.abs(expected).max()))
        np.testing.assert_allclose(found, expected, rtol=0, atol=limit)
    stored = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    matrices = {n: a for n, a in stored.items() if a.dtype == np.int8 and a.ndim in (2, 4)}
    assert len(matrices) >= 4
    for weight, array in matrices.items():
        assert np.array_equal(np.asarray(library.weights[weight]), array)
