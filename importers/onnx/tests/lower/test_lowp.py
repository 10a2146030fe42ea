"""Products of 8-bit integers from ONNX to a library: the results equal ONNX Runtime's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import packer
import runtime

from ..support.rewriting import make, random_inputs

WEIGHTS = {
    "s8": np.random.default_rng(1).integers(-128, 128, (70, 45)).astype(np.int8),
    "u8": np.random.default_rng(2).integers(0, 256, (70, 45)).astype(np.uint8),
    "z7": np.uint8(7),
    "m3": np.int8(-3),
    "zeros": np.random.default_rng(3).integers(0, 256, 45).astype(np.uint8),
    "zero": np.int8(0),
    **{
        f"k{inputs}{side}": np.random.default_rng(side)
        .integers(-128, 128, (6, channels, side, side))
        .astype(np.int8)
        for inputs, channels, side in ((3, 5, 3), (3, 3, 2), (1, 1, 1))
    },
    "kscales": np.random.default_rng(6).uniform(0.01, 0.03, 6).astype(np.float32),
    "kbias": np.random.default_rng(7).integers(-9999, 9999, 6).astype(np.int32),
    "no6": np.zeros(6, np.int8),
    "no": np.zeros(45, np.int8),
    "e1": np.float32(0.1),
    "e2": np.float32(0.02),
    "e3": np.float32(3.7),
    "scales": np.random.default_rng(4).uniform(0.01, 0.03, 45).astype(np.float32),
    "bias": np.random.default_rng(5).normal(size=45).astype(np.float32),
}
MODELS = {
    "signed weights": "(uint8[2,9,70] x) => (int32[] y) { y = MatMulInteger(x, s8, z7, m3) }",
    "a zero for each column": """(uint8[2,3,9,70] x) => (int32[] y) {
        y = MatMulInteger(x, u8, z7, zeros)
    }""",
    "two inputs": """(int8[5,9,33] x, int8[33,20] w, int8 a, int8 b) => (int32[] y) {
        y = MatMulInteger(x, w, a, b)
    }""",
    "quantised": """(uint8[4,70] x) => (uint8[] y) {
        y = QLinearMatMul(x, e1, z7, s8, scales, no, e3, z7)
    }""",
    "quantised to signed": """(int8[4,70] x) => (int8[] y) {
        y = QLinearMatMul(x, e1, m3, s8, e2, m3, e3, m3)
    }""",
    "any batch": "(uint8[batch,70] x) => (int32[] y) { y = MatMulInteger(x, s8, z7) }",
    "images": """(uint8[2,5,9,11] x) => (int32[] y) {
        y = ConvInteger<pads=[1,1,1,1]>(x, k33, z7, m3)
    }""",
    "images and a bias": """(int8[batch,5,9,11] x) => (int8[] y) {
        y = QLinearConv<pads=[1,0,1,1], strides=[2,2]>(x, e1, m3, k33, kscales, no6, e3, m3, kbias)
    }""",
    "groups": """(uint8[1,6,9,11] x) => (uint8[] y) {
        y = QLinearConv<group=2>(x, e1, z7, k32, e2, zero, e3, z7)
    }""",
    "depthwise": """(uint8[1,6,9,11] x) => (uint8[] y) {
        y = QLinearConv<group=6, auto_pad="SAME_UPPER">(x, e1, z7, k11, e2, zero, e3, z7)
    }""",
    "elements": """(float[batch,700] x) => (float[] y) {
        q = QuantizeLinear(x, e2, z7) y = DequantizeLinear(q, e1, z7)
    }""",
    "signed elements": """(float[3,7] x) => (float[] y) {
        q = QuantizeLinear(x, e2, m3) y = DequantizeLinear(q, e1, m3)
    }""",
    "dynamic": """(float[batch,70] x) => (float[] y) {
        q, s, z = DynamicQuantizeLinear(x) p = MatMulInteger(q, s8, z, m3)
        c = Cast<to=1>(p) t = Mul(s, scales) m = Mul(c, t) a = Add(m, bias) y = Gelu(a)
    }""",
}


def library_of(model: onnx.ModelProto, folder: Path) -> runtime.Module:
    """Export a model."""
    dynamic = ["batch"] if "batch" in str(model.graph.input) else []
    module = packer.from_onnx(model, dynamic=dynamic)
    return runtime.load(packer.export_library(module, folder / "model.so"))


@pytest.mark.parametrize("case", MODELS)
def test_results_are_those_of_onnx_runtime(case: str, tmp_path: Path) -> None:
    """Integers are equal; each node is one of the kernel."""
    model = make(MODELS[case], WEIGHTS)
    library = library_of(model, tmp_path)
    inputs = random_inputs(model, batch=3)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, inputs)[0]
    found = np.asarray(library["main"](*inputs.values()))
    assert found.dtype == expected.dtype
    if found.dtype == np.float32:
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    else:
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("kind", ["MatMul", "Gemm"])
def test_products_of_bfloat16_round_their_sums_once(kind: str, tmp_path: Path) -> None:
    """The sums are float32, with the bias; each result is the nearest bfloat16, or next to it."""
    import ml_dtypes

    random = np.random.default_rng(8)
    w, b = (random.normal(size=s).astype(ml_dtypes.bfloat16) for s in ((70, 45), (45,)))
    body = "y = Gemm(x, w, b)" if kind == "Gemm" else "m = MatMul(x, w) y = Add(m, b)"
    text = f"(bfloat16[9,70] x) => (bfloat16[] y) {{ {body} }}"
    library = library_of(make(text, {"w": w, "b": b}), tmp_path)
    x = random.normal(size=(9, 70)).astype(ml_dtypes.bfloat16)
    tensor = runtime.empty((9, 70), "bfloat16")
    memoryview(tensor.raw).cast("B")[:] = x.tobytes()
    found = np.frombuffer(bytes(library["main"](tensor).raw), ml_dtypes.bfloat16).reshape(9, 45)
    exact = x.astype(np.float64) @ w.astype(np.float64) + b.astype(np.float64)
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=2**-7, atol=2e-5)
    assert bytes(library.weights["w"].raw) == w.tobytes()


def test_weights_have_their_names_types_and_values(tmp_path: Path) -> None:
    """They are stored packed."""
    model = make(MODELS["a zero for each column"], WEIGHTS)
    weights = library_of(model, tmp_path).weights
    assert np.array_equal(np.asarray(weights["u8"]), WEIGHTS["u8"])
