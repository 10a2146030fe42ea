"""Products of float64."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import packer
import runtime
from dso_packer_onnx.rewrite.doubles import fuse_doubles

from ..support.fused import run_original
from ..support.rewriting import make, random_inputs, rewritten, unchanged

RANDOM = np.random.default_rng(3)
WEIGHTS = {"w": RANDOM.normal(size=(7, 33)), "v": RANDOM.normal(size=33)}
GRAPHS = {
    "a product": "y = MatMul(x, w)",
    "a Gemm": "y = Gemm(x, w, v)",
    "a scaled one": "y = Gemm<alpha=0.5, beta=2.0>(x, w, v)",
    "without an addend": "y = Gemm<beta=0.0>(x, w, v)",
    "transposed": "u = Transpose(x) z = Transpose(w) y = Gemm<transA=1, transB=1>(u, z)",
    "batches": "s = Unsqueeze(x, a) y = MatMul(s, w)",
}


@pytest.mark.parametrize("name", GRAPHS)
def test_products_are_one_operator(name: str, tmp_path: Path) -> None:
    """Factors and addends of a Gemm are others; a library computes the same."""
    weights = {**WEIGHTS, "a": np.array([0])}
    model = make(f"(double[5,7] x) => (double[] y) {{ {GRAPHS[name]} }}", weights)
    found = rewritten(model, fuse_doubles)
    assert "dso.DoubleMatMul" in found.kinds
    assert not {"MatMul", "Gemm"} & {*found.kinds}
    build = packer.Build(cpu="native")
    main = runtime.load(
        packer.export_library(packer.from_onnx(model), tmp_path / "a.so", build=build)
    )["main"]
    inputs = random_inputs(model)
    (expected,) = run_original(model, inputs)
    np.testing.assert_allclose(main(inputs["x"]).numpy(), expected, rtol=0, atol=1e-12)


def test_other_products_remain() -> None:
    """Of vectors, and of float32."""
    text = "(double[7] x, float[2,7] s, float[7,3] t) => (double[] y, float[] z)"
    assert unchanged(make(f"{text} {{ y = MatMul(x, w) z = MatMul(s, t) }}", WEIGHTS), fuse_doubles)
