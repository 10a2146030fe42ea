"""Rows that are normalized."""

from __future__ import annotations

import numpy as np
import pytest

from dso_packer_onnx.rewrite.normalize import fuse_normalize

from ..support.rewriting import make, rewritten, unchanged

RANDOM = np.random.default_rng(1)


def weight(*shape: int) -> np.ndarray:
    """Make random weights."""
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("text", "kind", "axis"),
    [
        ("LayerNormalization(x, w)", "layer", 2),
        ("LayerNormalization<epsilon=0.01>(x, w, b)", "layer", 2),
        ("LayerNormalization<axis=1>(x, w2, b2)", "layer", 1),
        ("RMSNormalization<axis=-1, epsilon=0.1>(x, w)", "rms", 2),
        ("Softmax(x)", "softmax", 2),
        ("Softmax<axis=2>(x)", "softmax", 2),
        ("LogSoftmax(x)", "log_softmax", 2),
    ],
)
def test_a_normalization_of_the_last_axes_is_fused(text: str, kind: str, axis: int) -> None:
    """The axis is counted from the front."""
    weights = {"w": weight(6), "b": weight(6), "w2": weight(5, 6), "b2": weight(5, 6)}
    model = make(f"(float[batch,5,6] x) => (float[] y) {{ y = {text} }}", weights)
    found = rewritten(model, fuse_normalize)
    assert found.kinds == ["dso.Normalize"]
    attributes = found.attributes("Normalize")
    assert (attributes["kind"], attributes["axis"]) == (kind, axis)


@pytest.mark.parametrize(
    "text",
    [
        "(float[2,5,6] x) => (float[] y) { y = Softmax<axis=1>(x) }",
        "(float[2,5,n] x, float[n] w) => (float[] y) { y = LayerNormalization(x, w) }",
        "(double[2,5,6] x) => (double[] y) { y = Softmax(x) }",
        "(float[2,5,6] x, float[1] w) => (float[] y) { y = LayerNormalization(x, w) }",
        "(float[2,5,6] x, float[5,6] w) => (float[] y) { y = LayerNormalization(x, w) }",
        """(float[2,5,6] x, float[6] w) => (float[] y, float[] m) {
            y, m = LayerNormalization(x, w)
        }""",
    ],
    ids=["another axis", "symbolic row", "double", "one scale", "a scale per row", "mean"],
)
def test_any_other_normalization_remains(text: str) -> None:
    """Each for one reason."""
    assert unchanged(make(text), fuse_normalize)
