"""Volumes in a library: convolutions, also transposed ones, and pools, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import numpy_helper, parser

import packer
import runtime

NATIVE = packer.Build(cpu="native")

# Networks of x with 3 channels; each weight is random, of the shape that its name has.
NETWORKS = {
    "residual": "a = Conv<strides=[1,2,2], pads=[1,3,3,1,3,3]>(x, w_32_3_3_7_7, w_32)"
    " b = Relu(a) c = MaxPool<kernel_shape=[3,3,3], strides=[2,2,2], pads=[1,1,1,1,1,1]>(b)"
    " e = Conv<pads=[1,1,1,1,1,1]>(c, w_32_32_3_3_3) f = Add(e, c) g = Relu(f)"
    " h = Conv<group=32, pads=[2,1,1,2,1,1], dilations=[2,1,1]>(g, w_32_1_3_3_3)"
    " y = Conv<strides=[2,2,2]>(h, w_20_32_1_1_1)",
    "contracted and expanded": "a = Conv<pads=[1,1,1,1,1,1]>(x, w_16_3_3_3_3) b = Relu(a)"
    " c = AveragePool<kernel_shape=[2,2,2], strides=[2,2,2]>(b)"
    " e = ConvTranspose<strides=[2,2,2]>(c, w_16_16_2_2_2, w_16) f = Concat<axis=1>(b, e)"
    " y = ConvTranspose<strides=[2,2,2], pads=[1,1,1,1,1,1]>(f, w_32_5_4_4_4)",
    "groups": "a = Conv(x, w_24_3_2_2_2) b = Conv<group=2, pads=[0,1,0,1,0,1]>(a, w_40_12_2_3_2)"
    " y = ConvTranspose<group=4, strides=[3,1,2]>(b, w_40_2_2_3_3)",
}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_of_volumes_are_exact(name: str, tmp_path: Path) -> None:
    """With open extents: one volume and two, of two depths."""
    text = f"(float[n,3,d,14,18] x) => (float[] y) {{ {NETWORKS[name]} }}"
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {text}')
    random = np.random.default_rng(1)
    for weight in {w for node in proto.graph.node for w in node.input if w.startswith("w_")}:
        shape = tuple(map(int, weight.split("_")[1:]))
        array = random.normal(size=shape).astype(np.float32) / np.sqrt(np.prod(shape[1:]))
        proto.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), weight))
    module = packer.from_onnx(proto, dynamic=["n", "d"])
    main = runtime.load(packer.export_library(module, tmp_path / "a.so", build=NATIVE))["main"]
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for batch, depth in ((1, 8), (2, 6)):
        x = random.normal(size=(batch, 3, depth, 14, 18)).astype(np.float32)
        (expected,) = session.run(None, {"x": x})
        found = main(x).numpy()
        assert found.shape == expected.shape
        assert np.abs(found - expected).max() <= 1e-5 * np.abs(expected).max()
