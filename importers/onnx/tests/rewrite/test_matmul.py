"""Matrix products, Gemm among them."""

from __future__ import annotations

import numpy as np
import pytest

from dso_packer_onnx.rewrite.matmul import fuse_gemm, fuse_matmul
from dso_packer_onnx.rewrite.record import summary

from ..support.rewriting import make, rewritten, unchanged

RANDOM = np.random.default_rng(1)


def weight(*shape: int) -> np.ndarray:
    """Make random weights."""
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("3,4", "4,5"),
        ("batch,3,4", "4,5"),
        ("batch,6,3,4", "batch,6,4,5"),
        ("batch,6,3,4", "6,4,5"),
        ("1,3,4", "batch,4,5"),
    ],
)
def test_a_product_of_matrices_is_fused(a: str, b: str) -> None:
    """Batches broadcast as NumPy's do."""
    model = make(f"(float[{a}] x, float[{b}] w) => (float[] y) {{ y = MatMul(x, w) }}")
    found = rewritten(model, fuse_matmul)
    assert (found.kinds, found.result) == (["dso.MatMul"], 1)


def test_a_transpose_of_the_last_axes_is_that_of_the_factor() -> None:
    """No copy is left."""
    model = make(
        """(float[batch,2,4,3] x, float[batch,2,5,4] w) => (float[] y) {
            t = Transpose<perm=[0,1,3,2]>(x) u = Transpose<perm=[0,1,3,2]>(w) y = MatMul(t, u)
        }"""
    )
    found = rewritten(model, fuse_matmul)
    assert found.kinds == ["dso.MatMul"]
    assert (found.attributes("MatMul")["trans_a"], found.attributes("MatMul")["trans_b"]) == (1, 1)


def test_another_transpose_remains() -> None:
    """Only the last two axes can be swapped while the product reads them."""
    model = make(
        """(float[3,2,4] x, float[2,4,5] w) => (float[] y) {
            t = Transpose<perm=[1,0,2]>(x) y = MatMul(t, w)
        }"""
    )
    assert rewritten(model, fuse_matmul).kinds == ["Transpose", "dso.MatMul"]


@pytest.mark.parametrize(
    "text",
    [
        "(float[4] x, float[4,5] w) => (float[] y) { y = MatMul(x, w) }",
        "(double[3,4] x, double[4,5] w) => (double[] y) { y = MatMul(x, w) }",
    ],
    ids=["a vector", "double"],
)
def test_any_other_product_remains(text: str) -> None:
    """The kernel multiplies float32 matrices."""
    assert unchanged(make(text), fuse_matmul)


@pytest.mark.parametrize("trans", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("c", [None, (5,), (1, 5), (1,), (3, 5), ()])
def test_gemm_is_fused_with_its_factors_and_addend(
    trans: tuple[int, int], c: tuple[int, ...] | None
) -> None:
    """Both scales are in the weights afterwards, and one number is a row."""
    a = "4,3" if trans[0] else "3,4"
    weights = {"w": weight(*((5, 4) if trans[1] else (4, 5)))}
    if c is not None:
        weights["c"] = weight(*c)
    last = "" if c is None else ", c"
    model = make(
        f"""(float[{a}] x) => (float[] y) {{
            y = Gemm<alpha=0.5, beta=2.0, transA={trans[0]}, transB={trans[1]}>(x, w{last})
        }}""",
        weights,
    )
    found = rewritten(model, fuse_gemm)
    assert found.kinds == ["dso.MatMul"]
    inputs = found.node("MatMul").inputs
    if c is not None:
        assert tuple(inputs[-1].shape) == (c if c == (3, 5) else (5,))
        assert len(inputs) == (4 if c == (3, 5) else 3)
    changed = summary(found.model, list(weights))
    assert changed["w"] == "multiplied by the alpha of 'Gemm_0'"
    assert ("c" in changed) == (c is not None)


def test_gemm_without_scales_keeps_its_weights() -> None:
    """There is nothing to record."""
    model = make(
        "(float[batch,4] x) => (float[] y) { y = Gemm<transB=1>(x, w, c) }",
        {"w": weight(5, 4), "c": weight(5)},
    )
    found = rewritten(model, fuse_gemm)
    assert found.kinds == ["dso.MatMul"]
    assert summary(found.model, ["w", "c"]) == {}


@pytest.mark.parametrize(
    ("text", "fused"),
    [
        (
            "(float[3,4] x, float[4,5] w, float[5] c) => (float[] y) { y = Gemm(x, w, c) }",
            True,
        ),
        (
            "(float[3,4] x, float[4,5] w, float[3,5] c) => (float[] y) { y = Gemm(x, w, c) }",
            True,
        ),
        (
            "(float[3,4] x, float[4,5] w, float[3,1] c) => (float[] y) { y = Gemm(x, w, c) }",
            False,
        ),
        (
            "(float[3,4] x, float[4,5] w) => (float[] y) { y = Gemm<alpha=0.5>(x, w) }",
            False,
        ),
        (
            "(float[3,4] x, float[4,5] w, float[5] c) => (float[] y)"
            " { y = Gemm<beta=0.5>(x, w, c) }",
            False,
        ),
        (
            "(float[3,4] x, float[4,5] w, float[5] c) => (float[] y)"
            " { y = Gemm<beta=0.0>(x, w, c) }",
            True,
        ),
    ],
    ids=["row", "matrix", "column", "alpha", "beta", "beta 0"],
)
def test_gemm_of_computed_factors_is_fused_where_no_scale_is_left(text: str, fused: bool) -> None:
    """A scale can only be multiplied into a constant."""
    assert rewritten(make(text), fuse_gemm).kinds == (["dso.MatMul"] if fused else ["Gemm"])


def test_a_scaled_weight_that_others_read_too_remains_for_them() -> None:
    """The scaled one has another name."""
    model = make(
        """(float[3,4] x) => (float[] y, float[] z) {
            y = Gemm<alpha=0.5>(x, w) z = Gemm(x, w)
        }""",
        {"w": weight(4, 5)},
    )
    found = rewritten(model, fuse_gemm)
    assert found.kinds == ["dso.MatMul", "dso.MatMul"]
    assert set(found.model.graph.initializers) == {"w", "w.1"}
