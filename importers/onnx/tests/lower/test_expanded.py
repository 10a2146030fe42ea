"""Operators with open extents that become others, and pads that repeat elements."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import packer
import runtime

RANDOM = np.random.default_rng(1)
SIZES = ({"b": 2, "n": 3}, {"b": 5, "n": 7})
Shape = tuple[int | str, ...]


def model(kind: str, shape: Shape, weights: dict[str, Any], **attributes: Any) -> onnx.ModelProto:
    """A model of one node, whose outputs are Y and those after it."""
    count = {"LSTM": 3, "GRU": 2, "RNN": 2}.get(kind, 1)
    names = [f"y{i}" for i in range(count)]
    node = helper.make_node(kind, ["x", *weights], names, "node", **attributes)
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in names]
    x = helper.make_tensor_value_info("x", 1, shape)
    stored = [numpy_helper.from_array(np.asarray(w), name) for name, w in weights.items()]
    graph = helper.make_graph([node], "g", [x], outputs, stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def run(proto: onnx.ModelProto, folder: Path) -> Any:
    """Return the function of a library."""
    module = packer.from_onnx(proto)
    path = packer.export_library(module, folder / "m.so", build=packer.Build(cpu=()))
    return runtime.load(path)["main"]


def peer(proto: onnx.ModelProto, x: np.ndarray) -> list[np.ndarray]:
    """Return the results of ONNX Runtime."""
    return onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": x})


def sample(shape: Shape, sizes: dict[str, int]) -> np.ndarray:
    """Random numbers, none of which is negative."""
    extents = [sizes[one] if isinstance(one, str) else one for one in shape]
    return RANDOM.uniform(size=extents).astype(np.float32)


AXIS = {"axes": np.array([1])}
ROWS = {"pads": np.array([0, 2, 1, 0, 3, 2])}
CASES: dict[str, tuple[str, Shape, dict[str, Any], dict[str, Any]]] = {
    "a sum": ("ReduceLogSum", ("b", "n", 4), AXIS, {"keepdims": 0}),
    "powers": ("ReduceLogSumExp", ("b", "n", 4), AXIS, {"keepdims": 0}),
    "powers that stay": ("ReduceLogSumExp", ("b", "n", 4), AXIS, {}),
    "all powers": ("ReduceLogSumExp", ("b", "n", 4), {}, {"keepdims": 0}),
    "reflect": ("Pad", ("b", 4, "n"), ROWS, {"mode": "reflect"}),
    "edge": ("Pad", (2, "b", "n"), ROWS, {"mode": "edge"}),
    "wrap": ("Pad", (1, 4, "n"), ROWS, {"mode": "wrap"}),
}


@pytest.mark.parametrize("name", CASES)
def test_one_library_computes_all_extents_as_onnx_runtime(name: str, tmp_path: Path) -> None:
    """Of two shapes."""
    kind, shape, weights, attributes = CASES[name]
    proto = model(kind, shape, weights, **attributes)
    main = run(proto, tmp_path)
    for sizes in SIZES:
        x = sample(shape, sizes)
        np.testing.assert_allclose(main(x).numpy(), peer(proto, x)[0], rtol=2e-6)


def test_powers_neither_overflow_nor_lose_infinities(tmp_path: Path) -> None:
    """The logarithm of sums of large powers, of none, and of infinite ones."""
    infinity = np.inf
    x = np.array(
        [[500, 501], [-500, -500], [-infinity, -infinity], [infinity, 1], [np.nan, 1]], np.float32
    )
    proto = model("ReduceLogSumExp", ("b", 2), AXIS, keepdims=0)
    np.testing.assert_allclose(run(proto, tmp_path)(x).numpy(), peer(proto, x)[0], rtol=1e-6)


def test_pads_cannot_repeat_what_is_not_there(tmp_path: Path) -> None:
    """An axis without elements has none at its edge."""
    main = run(model("Pad", ("b", 4, "n"), ROWS, mode="edge"), tmp_path)
    with pytest.raises(IndexError, match="Pad: elements of axis 2, expected 1 to"):
        main(np.zeros((2, 4, 0), np.float32))


@pytest.mark.parametrize(("kind", "gates"), [("LSTM", 4), ("GRU", 3), ("RNN", 1)])
def test_layers_take_batches_first(kind: str, gates: int, tmp_path: Path) -> None:
    """ONNX Runtime computes the layer with steps first: its results are turned."""
    shapes = {"w": (2, 8 * gates, 5), "r": (2, 8 * gates, 8), "bias": (2, 16 * gates)}
    weights = {name: sample(shape, {}) - 0.5 for name, shape in shapes.items()}
    both = {"hidden_size": 8, "direction": "bidirectional"}
    main = run(model(kind, ("b", "n", 5), weights, layout=1, **both), tmp_path)
    steps_first = model(kind, ("n", "b", 5), weights, **both)
    for sizes in SIZES:
        x = sample(("b", "n", 5), sizes)
        expected = peer(steps_first, x.transpose(1, 0, 2))
        turns = [(2, 0, 1, 3), (1, 0, 2), (1, 0, 2)]
        for found, wanted, turn in zip(main(x), expected, turns, strict=False):
            np.testing.assert_allclose(found.numpy(), wanted.transpose(turn), atol=5e-6)
