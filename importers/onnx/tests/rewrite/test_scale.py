"""Batch normalization and scales, folded into weights."""

from __future__ import annotations

import numpy as np
import pytest

from dso_packer_onnx.rewrite.conv import fuse_conv
from dso_packer_onnx.rewrite.matmul import fuse_gemm, fuse_matmul
from dso_packer_onnx.rewrite.record import summary
from dso_packer_onnx.rewrite.scale import fold_batch_norm, fold_scale

from ..support.rewriting import make, rewritten

RANDOM = np.random.default_rng(1)
STATISTICS = ("gamma", "beta", "mean", "var")


def weight(*shape: int) -> np.ndarray:
    """Make random weights."""
    return RANDOM.normal(size=shape).astype(np.float32)


def statistics(count: int) -> dict[str, np.ndarray]:
    """Make random factors of a batch normalization."""
    arrays = {name: weight(count) for name in STATISTICS}
    return {**arrays, "var": np.abs(arrays["var"]) + np.float32(0.1)}


SUMS = {
    "Conv(x, w)": (6, 4, 3, 3),
    "Conv(x, w, b)": (6, 4, 3, 3),
    "Conv<group=2>(x, w, b)": (6, 2, 3, 3),
    "ConvTranspose(x, w)": (4, 6, 3, 3),
    "ConvTranspose<group=2, strides=[2,2]>(x, w, b)": (4, 3, 3, 3),
}


@pytest.mark.parametrize("text", SUMS)
def test_a_batch_normalization_is_folded_into_the_sum_before_it(text: str) -> None:
    """Its four factors are recorded, and a bias is made if there was none."""
    weights = {"w": weight(*SUMS[text]), **statistics(6)}
    if " b)" in text:
        weights["b"] = weight(6)
    model = make(
        f"""(float[batch,4,5,5] x) => (float[] y) {{
            s = {text} y = BatchNormalization<epsilon=0.01>(s, gamma, beta, mean, var)
        }}""",
        weights,
    )
    found = rewritten(model, fuse_conv, fold_batch_norm)
    assert len(found.kinds) == 1
    assert set(found.model.graph.initializers) == {"w", "b" if "b" in weights else "w.bias"}
    changed = summary(found.model, list(weights))
    assert changed["w"] == "scaled by the batch normalization 'BatchNormalization_1'"
    assert changed["gamma"] == "in 'w': part of 'BatchNormalization_1'"


@pytest.mark.parametrize("trans", [0, 1])
def test_a_batch_normalization_is_folded_into_a_gemm(trans: int) -> None:
    """The columns of the product are the channels."""
    model = make(
        f"""(float[batch,4] x) => (float[] y) {{
            s = Gemm<transB={trans}>(x, w, b) y = BatchNormalization(s, gamma, beta, mean, var)
        }}""",
        {"w": weight(6, 4) if trans else weight(4, 6), "b": weight(6), **statistics(6)},
    )
    assert rewritten(model, fuse_gemm, fold_batch_norm).kinds == ["dso.MatMul"]


def test_any_other_batch_normalization_is_a_product_and_a_sum() -> None:
    """With constants for each channel."""
    model = make(
        """(float[batch,4,5,5] x) => (float[] y) {
            y = BatchNormalization(x, gamma, beta, mean, var)
        }""",
        statistics(4),
    )
    found = rewritten(model, fold_batch_norm)
    assert found.kinds == ["Mul", "Add"]
    assert set(summary(found.model, list(STATISTICS))) == set(STATISTICS)


def test_a_sum_that_others_read_keeps_its_weights() -> None:
    """They read it before the normalization."""
    model = make(
        """(float[batch,4,5,5] x) => (float[] y, float[] s) {
            s = Conv(x, w) y = BatchNormalization(s, gamma, beta, mean, var)
        }""",
        {"w": weight(6, 4, 3, 3), **statistics(6)},
    )
    assert rewritten(model, fuse_conv, fold_batch_norm).kinds == ["dso.Conv", "Mul", "Add"]


def test_weights_of_two_sums_are_scaled_apart() -> None:
    """The other sum reads the model's weights."""
    model = make(
        """(float[batch,4,5,5] x) => (float[] y, float[] z) {
            s = Conv(x, w) y = BatchNormalization(s, gamma, beta, mean, var) z = Conv(x, w)
        }""",
        {"w": weight(6, 4, 3, 3), **statistics(6)},
    )
    found = rewritten(model, fuse_conv, fold_batch_norm)
    assert set(found.model.graph.initializers) == {"w", "w.1", "w.bias"}


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("s = Conv(x, w, b) y = Mul(s, f)", (4, 1, 1)),
        ("s = Conv(x, w) y = Mul(f, s)", (1, 4, 1, 1)),
        ("s = Conv(x, w, b) y = Div(s, f)", (1,)),
        ("s = ConvTranspose(x, w, b) y = Mul(s, f)", (4, 1, 1)),
        ("s = MatMul(x, v) y = Mul(s, f)", (5,)),
        ("s = MatMul(x, v) y = Div(s, f)", ()),
    ],
)
def test_a_constant_factor_is_folded_into_the_weights(text: str, shape: tuple[int, ...]) -> None:
    """One for all, or one for each channel or column."""
    weights = {"w": weight(4, 4, 3, 3), "v": weight(5, 5), "b": weight(4), "f": weight(*shape)}
    model = make(f"(float[batch,4,5,5] x) => (float[] y) {{ {text} }}", weights)
    found = rewritten(model, fuse_conv, fuse_matmul, fold_scale)
    assert len(found.kinds) == 1


@pytest.mark.parametrize(
    "text",
    [
        "s = Conv(x, w) y = Mul(s, f)",
        "s = Conv(x, w) y = Div(g, s)",
        "s = Conv(x, w) y = Mul(s, s)",
        "s = Relu(x) y = Mul(s, g)",
        "s = MatMul(x, x) y = Mul(s, g)",
    ],
    ids=["along the width", "quotient", "square", "no sum", "no weights"],
)
def test_another_factor_remains(text: str) -> None:
    """Each for one reason."""
    weights = {"w": weight(4, 4, 3, 3), "f": weight(3), "g": weight(1)}
    model = make(f"(float[batch,4,5,5] x) => (float[] y) {{ {text} }}", weights)
    assert len(rewritten(model, fuse_conv, fuse_matmul, fold_scale).kinds) == 2
