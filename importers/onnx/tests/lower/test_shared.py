"""Operators that differ in numbers call one function."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import packer
import runtime

WIDTHS = (3, 5, 8, 17, 33, 40)


def network(count: int) -> onnx.ModelProto:
    """Convolutions of different widths, one after another."""
    random = np.random.default_rng(1)
    pairs = list(zip(WIDTHS, WIDTHS[1:], strict=False))[:count]
    weights = [random.standard_normal((b, a, 1, 1)).astype(np.float32) for a, b in pairs]
    make = onnx.helper.make_node
    nodes = [make("Conv", [f"x{i}", f"w{i}"], [f"x{i + 1}"]) for i in range(count)]
    shapes = [("x0", [1, WIDTHS[0], 4, 6]), (f"x{count}", [1, WIDTHS[count], 4, 6])]
    values = [onnx.helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes]
    stored = [onnx.numpy_helper.from_array(w, f"w{i}") for i, w in enumerate(weights)]
    graph = onnx.helper.make_graph(nodes, "g", values[:1], values[1:], stored)
    opset = [onnx.helper.make_opsetid("", 23)]
    return onnx.helper.make_model(graph, opset_imports=opset, ir_version=10)


@pytest.mark.parametrize(("count", "functions"), [(5, 1), (2, 2)])
def test_many_functions_become_one_and_few_remain(
    count: int, functions: int, tmp_path: Path
) -> None:
    """Their results are the model's."""
    model = network(count)
    module = packer.from_onnx(model)
    stems = [str(getattr(one, "stem", "")) for one in module.imported_modules]
    assert len([stem for stem in stems if stem.startswith("conv2d_")]) == functions
    main = runtime.load(packer.export_library(module, tmp_path / "m.so"))["main"]
    x = np.random.default_rng(2).standard_normal((1, WIDTHS[0], 4, 6)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x0": x})
    np.testing.assert_allclose(main(x).numpy(), expected, rtol=1e-4, atol=1e-4)
