"""Convolutions in a library whose weights are computed, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
from onnx import numpy_helper, parser

import packer
import runtime

NATIVE = packer.Build(cpu="native")

# Each weight is random, of the shape that its name has; m is a number that depends on x.
NETWORK = """
    m = ReduceMean<keepdims=0>(x) n = Exp(m) b = Mul(w_32, m)
    t = Mul(w_32_20_3_3, n) a = Conv<pads=[1,1,1,1]>(x, t, b) r = Relu(a)
    u = Mul(w_32_1_3_3, n) e = Conv<group=32, pads=[1,1,1,1]>(r, u)
    v = Mul(w_24_8_1_1, n) y = Conv<group=4, strides=[2,2]>(e, v)
    s = Reshape(x, shape) w = Mul(w_5_3_7, m) z = Conv(s, w)
    f = Reshape(x, volume) g = Mul(w_5_4_3_3_1, m) k = Conv<pads=[1,0,0,1,0,0]>(f, g)
"""


def test_computed_weights_are_packed_in_each_call(tmp_path: Path) -> None:
    """Images, also in blocks, groups, sequences and volumes."""
    text = f"(float[2,20,9,12] x) => (float[] y, float[] z, float[] k) {{ {NETWORK} }}"
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {text}')
    random = np.random.default_rng(1)
    shapes = {"shape": np.array([2, 3, 720]), "volume": np.array([2, 4, 5, 9, 12])}
    for name in {name for node in proto.graph.node for name in node.input}:
        if name.startswith("w_"):
            shape = tuple(map(int, name.split("_")[1:]))
            array = random.normal(size=shape).astype(np.float32)
        elif (array := shapes.get(name)) is None:
            continue
        proto.graph.initializer.append(numpy_helper.from_array(array, name))
    path = packer.export_library(packer.from_onnx(proto), tmp_path / "a.so", build=NATIVE)
    main = runtime.load(path)["main"]
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for _ in range(2):
        x = random.normal(size=(2, 20, 9, 12)).astype(np.float32)
        for found, expected in zip(main(x), session.run(None, {"x": x}), strict=True):
            assert np.abs(found.numpy() - expected).max() <= 1e-5 * np.abs(expected).max()
