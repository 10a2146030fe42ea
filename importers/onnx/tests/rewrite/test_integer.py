"""Products of 8-bit integers, as ONNX's operators for them have them."""

from __future__ import annotations

import numpy as np
import pytest

from dso_packer_onnx.rewrite.epilogue import fuse_activation, fuse_bias
from dso_packer_onnx.rewrite.integer import (
    fuse_integer_scale,
    fuse_matmul_integer,
    fuse_qlinear_matmul,
)
from dso_packer_onnx.rewrite.integer_conv import (
    fuse_conv_integer,
    fuse_qlinear_conv,
    raise_integer_volumes,
)

from ..support.rewriting import make, rewritten, unchanged

RANDOM = np.random.default_rng(1)


def integers(dtype: str, *shape: int) -> np.ndarray:
    """Random numbers of the whole range."""
    limits = np.iinfo(dtype)
    return RANDOM.integers(limits.min, limits.max + 1, shape).astype(dtype)


@pytest.mark.parametrize("zeros", [("", ""), (", za, zb", ""), (", za, zc", "")])
@pytest.mark.parametrize("b", ["int8", "uint8"])
def test_integer_products_are_fused(zeros: tuple[str, str], b: str) -> None:
    """With zeros of both factors, of the right one for each column too."""
    weights = {
        "w": integers(b, 4, 5),
        "za": np.uint8(7),
        "zb": np.array(3, b),
        "zc": integers(b, 5),
    }
    text = f"(uint8[batch,3,4] x) => (int32[] y) {{ y = MatMulInteger(x, w{zeros[0]}) }}"
    found = rewritten(make(text, weights), fuse_matmul_integer)
    assert (found.kinds, found.result) == (["dso.LowpMatMul"], 1)


def test_a_zero_for_each_row_remains() -> None:
    """The kernel has one for the left factor."""
    text = "(uint8[3,4] x, uint8[3] z) => (int32[] y) { y = MatMulInteger(x, w, z) }"
    assert unchanged(make(text, {"w": integers("int8", 4, 5)}), fuse_matmul_integer)


@pytest.mark.parametrize("channels", [1, 5])
def test_quantised_products_are_fused(channels: int) -> None:
    """The three scales become one, or one for each column."""
    weights = {
        "w": integers("int8", 4, 5),
        "sa": np.float32(0.02),
        "za": np.uint8(130),
        "sw": RANDOM.uniform(0.01, 0.02, channels).astype(np.float32),
        "zw": np.zeros(channels, np.int8),
        "s": np.float32(0.1),
        "z": np.uint8(100),
    }
    text = "(uint8[6,4] x) => (uint8[] y) { y = QLinearMatMul(x, sa, za, w, sw, zw, s, z) }"
    assert rewritten(make(text, weights), fuse_qlinear_matmul).kinds == ["dso.LowpMatMul"]


def test_computed_scales_are_multiplied_first() -> None:
    """The scale of the sums is computed with the others."""
    weights = {
        "w": integers("int8", 4, 5),
        "sa": np.float32(0.02),
        "z": np.uint8(0),
        "zw": np.int8(0),
    }
    text = """(uint8[6,4] x, float s) => (uint8[] y) {
        y = QLinearMatMul(x, sa, z, w, s, zw, sa, z)
    }"""
    found = rewritten(make(text, weights), fuse_qlinear_matmul)
    assert found.kinds == ["Mul", "Div", "dso.LowpMatMul"]


@pytest.mark.parametrize("zero", ["", ", z"])
def test_integer_convolutions_are_fused(zero: str) -> None:
    """With zeros of the image, of the weight, or none."""
    weights = {"w": integers("int8", 6, 3, 3, 3), "z": np.uint8(9)}
    text = (
        f"(uint8[batch,3,5,7] x) => (int32[] y) {{ y = ConvInteger<pads=[1,1,0,1]>(x, w{zero}) }}"
    )
    found = rewritten(make(text, weights), fuse_conv_integer)
    assert found.kinds == ["dso.LowpConv"]
    assert found.attributes("LowpConv")["pads"] == (1, 1, 0, 1)


def test_quantised_convolutions_are_fused() -> None:
    """The bias is added to the sums; grouped weights have a scale for each output."""
    weights = {
        "w": integers("int8", 6, 2, 3, 3),
        "b": RANDOM.integers(-5000, 5000, 6).astype(np.int32),
        "sa": np.float32(0.02),
        "za": np.uint8(130),
        "sw": RANDOM.uniform(0.01, 0.02, 6).astype(np.float32),
        "zw": np.zeros(6, np.int8),
        "s": np.float32(0.3),
    }
    text = """(uint8[2,4,5,7] x) => (uint8[] y) {
        y = QLinearConv<group=2>(x, sa, za, w, sw, zw, s, za, b)
    }"""
    assert rewritten(make(text, weights), fuse_qlinear_conv).kinds == ["dso.LowpConv"]


def test_a_convolution_along_one_axis_remains() -> None:
    """The kernel has two axes."""
    text = "(uint8[1,3,9] x) => (int32[] y) { y = ConvInteger(x, w) }"
    assert unchanged(make(text, {"w": integers("int8", 6, 3, 3)}), fuse_conv_integer)


def test_a_convolution_of_volumes_is_one_of_images() -> None:
    """The depths of a window are channels."""
    weights = {"w": integers("int8", 4, 3, 2, 3, 3), "z": np.uint8(9)}
    text = "(uint8[batch,3,5,6,7] x) => (int32[] y) { y = ConvInteger(x, w, z) }"
    found = rewritten(make(text, weights), raise_integer_volumes, fuse_conv_integer)
    assert found.kinds.count("dso.LowpConv") == 1
    assert found.node("LowpConv").inputs[1].shape == (4, 6, 3, 3)


def test_a_convolution_of_computed_volumes_remains() -> None:
    """A weight that a call gives is not laid out."""
    text = "(uint8[2,3,5,6,7] x, uint8[4,3,2,3,3] w) => (int32[] y) { y = ConvInteger(x, w) }"
    assert unchanged(make(text), raise_integer_volumes)


def test_a_dynamic_scale_bias_and_activation_follow_the_sums() -> None:
    """As dynamic quantisation writes a layer."""
    weights = {
        "w": integers("int8", 4, 5),
        "sw": np.float32(0.01),
        "zw": np.int8(1),
        "b": RANDOM.normal(size=5).astype(np.float32),
    }
    text = """(float[batch,4] x) => (float[] y) {
        q, s, z = DynamicQuantizeLinear(x)
        p = MatMulInteger(q, w, z, zw) c = Cast<to=1>(p)
        t = Mul(s, sw) m = Mul(c, t) a = Add(m, b) y = Relu(a)
    }"""
    changes = (fuse_matmul_integer, fuse_integer_scale, fuse_bias, fuse_activation)
    found = rewritten(make(text, weights), *changes)
    assert found.kinds == ["DynamicQuantizeLinear", "Mul", "dso.LowpMatMul"]
    assert found.attributes("LowpMatMul")["activation"] == "relu"
