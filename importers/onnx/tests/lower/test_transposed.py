"""Transposed convolutions in a library, in blocks and planar, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import packer
import runtime

# Attributes, and the outputs of a group. Whole blocks of channels are placed in blocks.
CASES = {
    "blocks": ({}, 16),
    "channels that fill no block": ({"pads": [1, 0, 0, 1]}, 20),
    "few channels": ({"pads": [1, 1, 1, 1]}, 3),
    "dilations": ({"dilations": [2, 3], "pads": [0, 2, 1, 0]}, 16),
    "groups": ({"group": 2, "pads": [0, 1, 1, 0]}, 16),
    "depthwise": ({"group": 32, "pads": [1, 1, 1, 1]}, 1),
}


def model_of(stride: int, attributes: dict[str, object], outputs: int) -> onnx.ModelProto:
    """Make a model: windows of 1, 3 and 4 rows, alone and between convolutions."""
    random = np.random.default_rng(stride)
    nodes, weights = [helper.make_node("Conv", ["x", "w"], ["u"])], {"w": (32, 32, 1, 1)}
    every = outputs * attributes.get("group", 1)
    for taps in (1, 3, 4):
        weights |= {f"w{taps}": (32, outputs, taps, 6 - taps), f"v{taps}": (4, every, 1, 1)}
        weights[f"b{taps}"] = (every,)
        for image, made in (("x", f"y{taps}"), ("u", f"t{taps}")):
            names = [image, f"w{taps}", f"b{taps}"]
            strides = [stride, 4 - stride]
            nodes.append(
                helper.make_node("ConvTranspose", names, [made], strides=strides, **attributes)
            )
        nodes.append(helper.make_node("Relu", [f"t{taps}"], [f"r{taps}"]))
        nodes.append(helper.make_node("Conv", [f"r{taps}", f"v{taps}"], [f"z{taps}"]))
    made = [node.output[0] for node in nodes if node.output[0][0] in "yz"]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, ("n", 32, 5, 7))],
        [helper.make_tensor_value_info(name, 1, None) for name in made],
        [
            numpy_helper.from_array(random.normal(size=shape).astype(np.float32), name)
            for name, shape in weights.items()
        ],
    )
    opsets = [helper.make_opsetid("", 21)]
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=opsets, ir_version=10)
    )


@pytest.mark.parametrize("stride", [2, 3])
@pytest.mark.parametrize("case", CASES)
def test_transposed_convolutions_are_exact(case: str, stride: int, tmp_path: Path) -> None:
    """One image and three, odd extents, other strides along both axes."""
    proto = model_of(stride, *CASES[case])
    module = packer.from_onnx(proto, dynamic=["n"])
    main = runtime.load(packer.export_library(module, tmp_path / "a.so"))["main"]
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for batch in (1, 3):
        x = np.random.default_rng(batch).normal(size=(batch, 32, 5, 7)).astype(np.float32)
        for found, expected in zip(main(x), session.run(None, {"x": x}), strict=True):
            assert found.shape == expected.shape
            assert np.abs(found.numpy() - expected).max() <= 1e-5 * np.abs(expected).max()
