"""Operators that differ in numbers call one function."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import packer
import runtime

from .test_loops import HEAD

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


def test_layers_of_a_dense_block_share_their_functions(tmp_path: Path) -> None:
    """Each layer joins all earlier ones, scales the channels, and makes further channels."""
    random = np.random.default_rng(1)
    weights = {"w": random.normal(size=(32, 3, 1, 1))}
    nodes, values = "y = Conv(x, w)", "y"
    for layer in range(6):
        width = 32 + 16 * layer
        shapes = {"s": (width, 1, 1), "b": (width, 1, 1), "w": (16, width, 3, 3)}
        weights |= {f"{k}{layer}": random.normal(size=v) / 16 for k, v in shapes.items()}
        nodes += f" c{layer} = Concat<axis = 1>({values}) m{layer} = Mul(c{layer}, s{layer})"
        nodes += f" a{layer} = Add(m{layer}, b{layer}) r{layer} = Relu(a{layer})"
        nodes += f" y{layer} = Conv<pads = [1, 1, 1, 1]>(r{layer}, w{layer})"
        values += f", y{layer}"
    text = f"(float[1,3,14,14] x) => (float[1,16,14,14] y5) {{ {nodes} }}"
    model = onnx.parser.parse_model(HEAD + text)
    model.graph.initializer.extend(
        onnx.numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()
    )
    module = packer.from_onnx(model)
    stems = [str(getattr(one, "stem", "")).rpartition("_")[0] for one in module.imported_modules]
    assert [stems.count(kind) for kind in ("join_images", "elementwise")] == [1, 1]
    main = runtime.load(packer.export_library(module, tmp_path / "m.so"))["main"]
    x = random.normal(size=(1, 3, 14, 14)).astype(np.float32)
    (expected,) = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})
    np.testing.assert_allclose(main(x).numpy(), expected, rtol=1e-5, atol=1e-5)
