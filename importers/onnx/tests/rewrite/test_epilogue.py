"""Bias, residual and activation after a sum."""

from __future__ import annotations

import numpy as np
import pytest

from dso_packer_onnx.rewrite.conv import fuse_conv
from dso_packer_onnx.rewrite.epilogue import fuse_activation, fuse_bias, fuse_residual
from dso_packer_onnx.rewrite.matmul import fuse_gemm, fuse_matmul
from dso_packer_onnx.rewrite.record import summary

from ..support.rewriting import Rewritten, make, rewritten

RANDOM = np.random.default_rng(1)
IMAGE = "(float[batch,4,6,6] x) => (float[] y)"
ROWS = "(float[batch,3,4] x) => (float[] y)"


def weight(*shape: int) -> np.ndarray:
    """Make random weights."""
    return RANDOM.normal(size=shape).astype(np.float32)


def fused(text: str, **weights: np.ndarray) -> Rewritten:
    """Fuse sums, and then what follows them."""
    sums = (fuse_conv, fuse_gemm, fuse_matmul)
    return rewritten(make(text, weights), *sums, fuse_bias, fuse_residual, fuse_activation)


@pytest.mark.parametrize("added", ["Add(s, b)", "Add( b, s)", "Sub(s, b)"])
@pytest.mark.parametrize("shape", [(4,), (1, 1, 4), (1,), ()])
def test_a_vector_added_to_a_product_is_its_bias(added: str, shape: tuple[int, ...]) -> None:
    """One number is added to each column."""
    found = fused(f"{ROWS} {{ s = MatMul(x, w) y = {added} }}", w=weight(4, 4), b=weight(*shape))
    assert found.kinds == ["dso.MatMul"]
    assert tuple(found.node("MatMul").inputs[2].shape) == (4,)


@pytest.mark.parametrize("shape", [(5, 1, 1), (1, 5, 1, 1), (1, 1, 1)])
def test_a_vector_added_to_a_convolution_is_its_bias(shape: tuple[int, ...]) -> None:
    """One number for each output channel."""
    found = fused(
        f"{IMAGE} {{ s = Conv(x, w) y = Add(s, b) }}", w=weight(5, 4, 3, 3), b=weight(*shape)
    )
    assert found.kinds == ["dso.Conv"]
    assert tuple(found.node("Conv").inputs[2].shape) == (5,)


def test_a_second_bias_is_added_to_the_first() -> None:
    """Both are recorded."""
    found = fused(
        f"{IMAGE} {{ s = Conv(x, w, b) y = Add(s, c) }}",
        w=weight(4, 4, 3, 3),
        b=weight(4),
        c=weight(4, 1, 1),
    )
    assert found.kinds == ["dso.Conv"]
    assert set(found.model.graph.initializers) == {"w", "b"}
    assert summary(found.model, ["w", "b", "c"]) == {
        "b": "the bias of 'Conv_0', with 'c'",
        "c": "in 'b': added to the bias of 'Conv_0'",
    }


@pytest.mark.parametrize(
    "text",
    [
        f"{IMAGE} {{ s = Conv(x, w) y = Add(s, b) }}",  # along the width
        f"{ROWS} {{ s = MatMul(x, v) y = Add(s, rows) }}",
        f"{ROWS} {{ s = MatMul(x, v) y = Sub(c, s) }}",
        f"{ROWS} {{ s = MatMul(x, v) y = Add(s, wide) }}",  # makes another axis
    ],
)
def test_another_addend_is_no_bias(text: str) -> None:
    """It has another axis, or the sum is subtracted."""
    found = fused(
        text,
        w=weight(4, 4, 3, 3),
        v=weight(4, 4),
        b=weight(4),
        c=weight(4),
        rows=weight(3, 1),
        wide=weight(2, 1, 1, 4),
    )
    assert len(found.kinds) == 2


def test_a_sum_that_others_read_has_no_bias() -> None:
    """They read it without the bias."""
    text = "(float[2,3,4] x) => (float[] y, float[] s) { s = MatMul(x, w) y = Add(s, b) }"
    assert len(fused(text, w=weight(4, 4), b=weight(4)).kinds) == 2


@pytest.mark.parametrize("added", ["Add(s, x)", "Add(x, s)"])
@pytest.mark.parametrize("after", ["Relu(t)", "Clip(t, lo, hi)", "Identity(t)"])
def test_a_residual_is_added_before_the_activation(added: str, after: str) -> None:
    """In one node, with an activation that does not match left out."""
    text = f"{IMAGE} {{ s = Conv<pads=[1,1,1,1]>(x, w) t = {added} y = {after} }}"
    found = fused(text, w=weight(4, 4, 3, 3), lo=np.float32(0), hi=np.float32(0.5))
    assert found.kinds == ["dso.Conv"] + (["Identity"] if "Identity" in after else [])
    assert found.node("Conv").inputs[2] is None
    assert found.node("Conv").inputs[3].name == "x"


def test_of_two_sums_the_later_one_has_the_residual() -> None:
    """The earlier one is its residual."""
    text = f"""{IMAGE} {{
        a = Conv(x, w) b = Conv(x, v) t = Add(a, b) y = Relu(t)
    }}"""
    found = fused(text, w=weight(4, 4, 3, 3), v=weight(4, 4, 3, 3))
    assert found.kinds == ["dso.Conv", "dso.Conv"]
    first, second = found.model.graph
    assert second.inputs[1].name == "v" and second.inputs[3] is first.outputs[0]


def test_a_sum_added_to_itself_has_no_residual() -> None:
    """The sum would not exist."""
    found = fused(f"{IMAGE} {{ s = Conv(x, w) y = Add(s, s) }}", w=weight(4, 4, 3, 3))
    assert found.kinds == ["dso.Conv", "Add"]


def test_a_residual_of_another_shape_is_added_after_the_sum() -> None:
    """The kernel does not broadcast it."""
    text = "(float[batch,3,4] x, float[1,3,4] r) => (float[] y) { s = MatMul(x, w) y = Add(s, r) }"
    assert fused(text, w=weight(4, 4)).kinds == ["dso.MatMul", "Add"]


@pytest.mark.parametrize(
    ("after", "activation", "limits"),
    [
        ("Relu(s)", "relu", (0, 0)),
        ("Clip(s, zero)", "relu", (0, 0)),
        ("Clip(s, zero, six)", "clip", (0, 6)),
        ("Clip(s, , six)", "clip", (-np.inf, 6)),
        ("Gelu(s)", "gelu", (0, 0)),
        ('Gelu<approximate="tanh">(s)', "gelu_tanh", (0, 0)),
    ],
)
def test_an_activation_is_fused(after: str, activation: str, limits: tuple[float, float]) -> None:
    """Each of the kernels' own."""
    text = f"{ROWS} {{ s = MatMul(x, w) y = {after} }}"
    found = fused(text, w=weight(4, 4), zero=np.float32(0), six=np.float32(6))
    assert found.kinds == ["dso.MatMul"]
    attributes = found.attributes("MatMul")
    assert (attributes["activation"], attributes["low"], attributes["high"]) == (
        activation,
        *limits,
    )


def test_a_clip_between_computed_or_crossed_limits_remains() -> None:
    """ONNX and the kernels differ where low is above high."""
    text = "(float[2,3,4] x, float low) => (float[] y) { s = MatMul(x, w) y = Clip(s, low) }"
    assert fused(text, w=weight(4, 4)).kinds == ["dso.MatMul", "Clip"]
    text = f"{ROWS} {{ s = MatMul(x, w) y = Clip(s, six, zero) }}"
    found = fused(text, w=weight(4, 4), zero=np.float32(0), six=np.float32(6))
    assert found.kinds == ["dso.MatMul", "Clip"]


def test_an_activation_comes_last() -> None:
    """Nothing is added after it."""
    text = f"{IMAGE} {{ s = Conv(x, w) t = Relu(s) y = Add(t, b) }}"
    assert fused(text, w=weight(4, 4, 3, 3), b=weight(4, 1, 1)).kinds == ["dso.Conv", "Add"]
