"""Graphs between QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import numpy as np
import pytest

from dso_packer_onnx.rewrite.epilogue import fuse_activation, fuse_bias
from dso_packer_onnx.rewrite.quantized import (
    fuse_dequantized,
    fuse_quantized_result,
    move_integers,
)

from ..support.rewriting import make, rewritten, unchanged

RANDOM = np.random.default_rng(1)
WEIGHTS = {
    "w": RANDOM.integers(-128, 128, (5, 4)).astype(np.int8),
    "k": RANDOM.integers(-128, 128, (5, 3, 3, 3)).astype(np.int8),
    "s": np.float32(0.02),
    "t": np.float32(0.05),
    "s5": RANDOM.uniform(0.01, 0.02, 5).astype(np.float32),
    "z": np.uint8(120),
    "z5": np.zeros(5, np.int8),
    "b": RANDOM.integers(-900, 900, 5).astype(np.int32),
    "zb": np.zeros(5, np.int32),
    "f": RANDOM.normal(size=5).astype(np.float32),
    "kf": RANDOM.normal(size=(5, 3, 3, 3)).astype(np.float32),
    "low": np.float32(-0.7),
    "high": np.float32(1.1),
    "shape": np.array([4, 3]),
}
WEIGHTS["sb"] = WEIGHTS["s"] * WEIGHTS["s5"]


@pytest.mark.parametrize("activation", ["Relu(c)", "Clip(c, low, high)", "Identity(c)"])
def test_a_convolution_between_them_is_one_of_integers(activation: str) -> None:
    """A bias of the scale of its sums is added to them; the activation is a bound."""
    model = make(
        f"""(uint8[2,3,6,7] x) => (uint8[] y) {{
            a = DequantizeLinear(x, s, z) d = DequantizeLinear<axis=0>(k, s5, z5)
            e = DequantizeLinear<axis=0>(b, sb, zb)
            c = Conv<pads=[1,1,1,1]>(a, d, e) r = {activation} y = QuantizeLinear(r, t, z)
        }}""",
        WEIGHTS,
    )
    changes = (fuse_dequantized, fuse_activation, fuse_quantized_result)
    kinds = rewritten(model, *changes).kinds
    assert [kind for kind in kinds if kind != "Identity"] == (
        ["dso.LowpConv"] if "Identity" not in activation else ["dso.LowpConv", "QuantizeLinear"]
    )


def test_a_weight_that_the_model_rounds_is_one_of_integers() -> None:
    """As training with quantisation leaves it: float32 before both nodes."""
    model = make(
        """(uint8[2,3,6,7] x) => (float[] y) {
            a = DequantizeLinear(x, s, z) q = QuantizeLinear<axis=0>(kf, s5, z5)
            d = DequantizeLinear<axis=0>(q, s5, z5) y = Conv(a, d)
        }""",
        WEIGHTS,
    )
    assert rewritten(model, fuse_dequantized).kinds == ["dso.LowpConv"]


def test_a_gemm_between_them_is_one_of_integers() -> None:
    """With a transposed weight and a bias of float32."""
    model = make(
        """(uint8[6,4] x) => (uint8[] y) {
            a = DequantizeLinear(x, s, z) d = DequantizeLinear<axis=0>(w, s5, z5)
            c = Gemm<transB=1>(a, d, f) y = QuantizeLinear(c, t, z)
        }""",
        WEIGHTS,
    )
    found = rewritten(model, fuse_dequantized, fuse_quantized_result)
    assert found.kinds == ["dso.LowpMatMul"]
    assert found.attributes("LowpMatMul")["trans_b"] == 1


def test_a_transposed_weight_is_read_where_it_is() -> None:
    """PyTorch writes a linear layer so; its bias is added after the product."""
    model = make(
        """(uint8[batch,2,4] x) => (float[] y) {
            a = DequantizeLinear(x, s, z) d = DequantizeLinear<axis=0>(w, s5, z5)
            t0 = Transpose<perm=[1,0]>(d) m = MatMul(a, t0) y = Add(m, f)
        }""",
        WEIGHTS,
    )
    assert rewritten(model, fuse_dequantized, fuse_bias).kinds == ["dso.LowpMatMul"]


def test_scales_along_the_sum_remain() -> None:
    """The sums of integers have one scale for each column."""
    model = make(
        """(uint8[3,5] x) => (float[] y) {
            a = DequantizeLinear(x, s, z) d = DequantizeLinear<axis=0>(w, s5, z5)
            y = MatMul(a, d)
        }""",
        WEIGHTS,
    )
    assert unchanged(model, fuse_dequantized)


@pytest.mark.parametrize(("second", "count"), [("s", 1), ("t", 0)])
def test_integers_are_moved_if_their_scale_stays(second: str, count: int) -> None:
    """A Reshape between two scales has to compute."""
    model = make(
        f"""(uint8[3,4] x) => (uint8[] y) {{
            a = DequantizeLinear(x, s, z) m = Reshape(a, shape) y = QuantizeLinear(m, {second}, z)
        }}""",
        WEIGHTS,
    )
    found = rewritten(model, move_integers)
    assert found.result == count
    assert found.kinds == (
        ["Reshape"] if count else ["DequantizeLinear", "Reshape", "QuantizeLinear"]
    )
