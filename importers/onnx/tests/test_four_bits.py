"""Weights of 4 bits before other operators than products stay 4 bits in the library."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import packer
import runtime

ONE_LEVEL = packer.Build(cpu=())
# The operator, the weight, the axis and size of its blocks (0: none), and the other input.
CASES = {
    "Conv by channel": ("Conv", (40, 30, 3, 3), 0, 0, (1, 30, 30, 30)),
    "Conv in blocks": ("Conv", (24, 36, 2, 3), 1, 16, (1, 36, 30, 31)),
    "Conv of one pixel": ("Conv", (256, 104, 1, 1), 1, 16, (1, 104, 28, 28)),
    "Mul in blocks of rows": ("Mul", (121, 201), 1, 16, (121, 201)),
    "Add by column": ("Add", (121, 203), 1, 0, (121, 203)),
    "Sub by row": ("Sub", (121, 203), 0, 0, (121, 203)),
    "Max in blocks": ("Max", (128, 203), 0, 32, (128, 203)),
    "MatMul by column": ("MatMul", (300, 96), 1, 0, (5, 300)),
    "MatMul of one scale": ("MatMul", (300, 96), -1, 0, (5, 300)),
    "MatMul in other blocks": ("MatMul", (292, 96), 0, 48, (5, 292)),
}


@pytest.mark.parametrize("has_zeros", [False, True])
@pytest.mark.parametrize("dtype", ["int4", "uint4"])
@pytest.mark.parametrize("name", CASES)
def test_it_stays_four_bits(name: str, dtype: str, has_zeros: bool, tmp_path: Path) -> None:
    """Less than half of its float32 is stored, and the result is that of ONNX's definition."""
    operator, shape, axis, block, other = CASES[name]
    random = np.random.default_rng(1)
    low = -8 if dtype == "int4" else 0
    kind = np.dtype(getattr(ml_dtypes, dtype))
    of_scale = [shape[axis]] if axis >= 0 else []
    if block:
        of_scale = [-(-d // block) if i == axis else d for i, d in enumerate(shape)]
    arrays = {
        "w": random.integers(low, low + 16, shape).astype(kind),
        "s": np.asarray(random.random(of_scale) / 10 + 0.01, np.float32),
        "z": np.asarray(random.integers(low, low + 16, of_scale)).astype(kind),
    }
    used = ["w", "s", "z"][: 2 + has_zeros]
    blocks = {"axis": max(axis, 0)} | ({"block_size": block} if block else {})
    helper = onnx.helper
    nodes = [
        helper.make_node("DequantizeLinear", used, ["f"], **blocks),
        helper.make_node(operator, ["x", "f"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", 1, other)]
    outputs = [helper.make_tensor_value_info("y", 1, None)]
    tensors = [onnx.numpy_helper.from_array(arrays[key], key) for key in used]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    module = packer.from_onnx(model)
    stored = [one.own_weights for one in module.imported_modules if one.own_weights]
    nbytes = sum(np.from_dlpack(one).nbytes for weights in stored for one in weights.values())
    assert nbytes < 4 * arrays["w"].size / 2
    library = runtime.load(packer.export_library(module, tmp_path / "m.so", build=ONE_LEVEL))
    x = random.standard_normal(other).astype(np.float32)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    found = library["main"](x).numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-4)
