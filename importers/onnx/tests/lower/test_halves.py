"""Models of float16 in a library, beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import numpy_helper, parser

import packer
import runtime

NATIVE = packer.Build(cpu="native")

# Networks of x; each weight is random, of the shape that its name has.
NETWORKS = {
    "[n,9,96]": "a = MatMul(x, w_96_200) b = Gelu(a) c = MatMul(b, w_200_96) e = Add(c, x)"
    " y = LayerNormalization(e, w_96, w_96)",
    "[n,20,9,12]": "a = Conv<pads=[1,1,1,1]>(x, w_32_20_3_3, w_32) b = Relu(a)"
    " c = Conv<group=32, pads=[1,1,1,1]>(b, w_32_1_3_3) e = Add(b, c)"
    " f = Conv<group=2>(e, w_24_16_1_1, w_24) h = GlobalAveragePool(f) i = Flatten(h)"
    " y = Gemm<transB=1>(i, w_40_24, w_40)",
    "[1,5,40]": "a = Conv<pads=[1,1]>(x, w_16_5_3) y = Softmax(a)",
}
# Weights of the library that are stored as float16
KEPT = {"w_96_200", "w_200_96", "w_32_20_3_3", "w_24_16_1_1", "w_40_24"}


@pytest.mark.parametrize("shape", NETWORKS)
def test_networks_of_float16(shape: str, tmp_path: Path) -> None:
    """Within the rounding of the result, with weights that take two bytes each."""
    text = f"(float16{shape} x) => (float16[] y) {{ {NETWORKS[shape]} }}"
    proto = parser.parse_model(f'<ir_version: 10, opset_import: ["" : 21]> g {text}')
    random, weights = np.random.default_rng(1), {}
    for name in {name for node in proto.graph.node for name in node.input if name[:2] == "w_"}:
        extents = tuple(map(int, name.split("_")[1:]))
        array = random.normal(size=extents) / np.sqrt(max(np.prod(extents[1:]), 1))
        weights[name] = array.astype(np.float16)
        proto.graph.initializer.append(numpy_helper.from_array(weights[name], name))
    model = packer.from_onnx(proto, dynamic=["n"] if "n" in shape else [])
    library = runtime.load(packer.export_library(model, tmp_path / "a.so", build=NATIVE))
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    for batch in (1, 3) if "n" in shape else (1,):
        extents = [batch, *map(int, shape[3:-1].split(","))]
        x = random.normal(size=extents).astype(np.float16)
        (expected,) = session.run(None, {"x": x})
        found = library["main"](x).numpy().astype(np.float32)
        assert np.abs(found - expected).max() <= 2e-3 * np.abs(expected).max()
    for name in KEPT & weights.keys():
        np.testing.assert_array_equal(library.weights[name].numpy(), weights[name])
