"""Normalizations, spelled out and of groups of channels."""

from __future__ import annotations

import numpy as np
import pytest

from dso_packer_onnx.rewrite.moments import (
    fuse_group_normalization,
    fuse_moments,
    fuse_row_factors,
)
from dso_packer_onnx.rewrite.normalize import fuse_normalize

from ..support.rewriting import make, rewritten, unchanged

RANDOM = np.random.default_rng(1)


def weight(*shape: int) -> np.ndarray:
    """Make random weights."""
    return RANDOM.normal(size=shape).astype(np.float32)


WEIGHTS = {
    "last": np.array([-1]),
    "two": np.float32(2),
    "eps": np.float32(0.01),
    "w": weight(6),
    "b": weight(6),
    "rows": weight(5, 1),
    "both": np.array([1, 2]),
    "middle": np.array([1]),
    "number": np.array([3], np.float32),
}
ROOT = "e = Add(v, eps) r = Sqrt(e) "
SQUARE = "s = Mul(x, x) v = ReduceMean(s, last) " + ROOT
CENTRED = "m = ReduceMean(x, last) d = Sub(x, m) s = Pow(d, two) v = ReduceMean(s, last) " + ROOT


@pytest.mark.parametrize(
    ("text", "kind", "count"),
    [
        (CENTRED + "n = Div(d, r) f = Mul(n, w) y = Add(f, b)", "layer", 3),
        (CENTRED + "i = Reciprocal(r) n = Mul(d, i) f = Mul(w, n) y = Add(b, f)", "layer", 3),
        (CENTRED + "y = Div(d, r)", "layer", 1),
        (CENTRED + "n = Div(d, r) y = Add(n, b)", "layer", 3),
        (SQUARE + "i = Reciprocal(r) n = Mul(x, i) y = Mul(w, n)", "rms", 2),
        (SQUARE + "n = Div(x, r) y = Mul(n, number)", "rms", 2),
    ],
)
def test_a_normalization_that_is_spelled_out_is_fused(text: str, kind: str, count: int) -> None:
    """Factors may be missing, or one number."""
    model = make(f"(float[batch,5,6] x) => (float[] y) {{ {text} }}", WEIGHTS)
    found = rewritten(model, fuse_moments, fuse_row_factors)
    assert found.kinds == ["dso.Normalize"]
    assert found.attributes("Normalize")["kind"] == kind
    assert len(found.node("Normalize").inputs) == count


def test_rows_may_have_several_axes() -> None:
    """The last ones."""
    text = CENTRED.replace("last", "both") + "y = Div(d, r)"
    model = make(f"(float[batch,5,6] x) => (float[] y) {{ {text} }}", WEIGHTS)
    assert rewritten(model, fuse_moments).attributes("Normalize")["axis"] == 1


@pytest.mark.parametrize(
    "text",
    [
        CENTRED.replace("last", "middle") + "y = Div(d, r)",
        "s = Mul(x, x) v = ReduceMean<keepdims=0>(s, both) " + ROOT + "y = Div(x, r)",
        SQUARE + "n = Neg(x) y = Div(n, r)",
        SQUARE + "y = Div(r, x)",
        "s = Mul(x, two) v = ReduceMean(s, last) " + ROOT + "y = Div(x, r)",
    ],
    ids=["another axis", "axes removed", "another value", "inverse", "no square"],
)
def test_another_quotient_remains(text: str) -> None:
    """Each differs in one place."""
    model = make(f"(float[6,5,6] x) => (float[] y) {{ {text} }}", WEIGHTS)
    assert unchanged(model, fuse_moments)


@pytest.mark.parametrize(
    "text",
    ["n = Softmax(x) y = Mul(n, w)", "n = RMSNormalization(x, w) y = Mul(n, rows)"],
    ids=["softmax", "a factor for each row"],
)
def test_another_factor_is_no_scale(text: str) -> None:
    """Softmax has none, and a scale has one number for each column."""
    model = make(f"(float[batch,5,6] x) => (float[] y) {{ {text} }}", WEIGHTS)
    assert rewritten(model, fuse_normalize, fuse_row_factors).kinds == ["dso.Normalize", "Mul"]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("InstanceNormalization(x, s, t)", ["dso.Normalize", "Mul", "Add"]),
        ("InstanceNormalization(x, ones, zeros)", ["dso.Normalize"]),
        ("GroupNormalization<num_groups=2, epsilon=0.1>(x, s, zeros)", ["dso.Normalize", "Mul"]),
    ],
)
def test_a_group_of_channels_is_a_row(text: str, left: list[str]) -> None:
    """Factors that are all 1 or 0 are left out."""
    weights = {
        "s": weight(4),
        "t": weight(4),
        "ones": np.ones(4, np.float32),
        "zeros": np.zeros(4, np.float32),
    }
    model = make(f"(float[batch,4,3,5] x) => (float[batch,4,3,5] y) {{ y = {text} }}", weights)
    found = rewritten(model, fuse_group_normalization)
    assert [kind for kind in found.kinds if kind != "Reshape"] == left
