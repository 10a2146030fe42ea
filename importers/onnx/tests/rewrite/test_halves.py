"""Halves that are computed as float32."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from dso_packer_onnx.rewrite.conv import fuse_conv
from dso_packer_onnx.rewrite.halves import widen_halves, widen_weights
from dso_packer_onnx.rewrite.matmul import fuse_gemm, fuse_matmul

from ..support.rewriting import make, rewritten, unchanged

RANDOM = np.random.default_rng(3)
WEIGHTS = {
    "w": RANDOM.normal(size=(8, 8)).astype(np.float16),
    "v": RANDOM.normal(size=8).astype(np.float16),
    "c": RANDOM.normal(size=(8, 4, 3, 3)).astype(np.float16),
    "d": RANDOM.normal(size=(8, 1, 3, 3)).astype(np.float16),
    "t": RANDOM.normal(size=(9, 8)).astype(np.float16),
    "i": np.array([3, 0]),
    "s": np.array([2, 1]),
}
# Values of float16[2,8] or float16[1,8,9,9], and the types that weights keep.
GRAPHS = {
    "a product": ("a = MatMul(x, w) b = Add(a, v) y = Relu(b)", [10]),
    "a transposed weight": ("u = Transpose(w) y = MatMul(x, u)", [10]),
    "a Gemm": ("y = Gemm<transB=1>(x, w, v)", [10, 1]),
    "a scaled one": ("y = Gemm<alpha=0.5>(x, w, v)", [1, 1]),
    "a weight on the left": ("u = Transpose(x) y = MatMul(w, u)", []),
    "two products": ("a = MatMul(x, w) b = Softmax(a) y = MatMul(b, w)", [10]),
    "a convolution": ("y = Conv<group=2>(x, c, v)", [10, 1]),
    "a depthwise one": ("y = Conv<group=8>(x, d, v)", [1, 1]),
    "several results": ("a = MatMul(x, w) b, e = Split<num_outputs=2>(a) y = Add(b, e)", [10]),
    "mixed types": ("a = Cast<to=1>(x) b = Exp(a) e = Cast<to=10>(b) y = MatMul(e, w)", [10]),
    "a table": ("e = Gather(t, i) a = Add(e, x) y = MatMul(a, w)", [10]),
    "bits in between": ("a = MatMul(x, w) b = IsNaN(a) e = Cast<to=10>(b) y = Add(a, e)", [10]),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_results_are_within_the_rounding_of_the_type(name: str) -> None:
    """Products and convolutions are kernels; weights on the right remain halves."""
    body, kept = GRAPHS[name]
    shape = "1,8,9,9" if "convolution" in name or "depthwise" in name else "2,8"
    model = make(f"(float16[{shape}] x) => (float16[] y) {{ {body} }}", WEIGHTS)
    changes = (widen_halves, fuse_gemm, fuse_matmul, fuse_conv, widen_weights)
    found = rewritten(model, *changes, tolerance=2e-3)
    products = [n for n in found.model.graph if n.domain == "dso"]
    assert products
    read = {v for n in products for v in n.inputs[1:] if v is not None}
    assert sorted(int(v.dtype) for v in read if v.const_value is not None) == sorted(kept)
    inner = {v.dtype for n in products for v in (n.inputs[0], n.outputs[0])}
    assert inner == {ir.DataType.FLOAT}


def test_an_output_in_the_middle_is_a_half() -> None:
    """Others read float32."""
    text = "(float16[2,8] x) => (float16[] a, float16[] y) { a = MatMul(x, w) y = Tanh(a) }"
    found = rewritten(make(text, WEIGHTS), widen_halves, fuse_matmul, tolerance=2e-3)
    assert [value.name for value in found.model.graph.outputs] == ["a", "y"]
    assert found.kinds.count("Cast") == 3


@pytest.mark.parametrize(
    "text",
    [
        "(float16[2,8] x) => (float16[] y) { y = Exp(x) }",
        "(float[2,8] x, float[8,3] z) => (float[] y) { y = MatMul(x, z) }",
        "(bfloat16[2,8] x, bfloat16[8,3] z) => (bfloat16[] y) { y = MatMul(x, z) }",
        "(double[2,8] x, double[8,3] z) => (double[] y) { y = MatMul(x, z) }",
    ],
    ids=["no product", "float32", "bfloat16 has a kernel", "float64"],
)
def test_other_types_and_operators_remain(text: str) -> None:
    """Each for one reason."""
    assert unchanged(make(text), widen_halves)
