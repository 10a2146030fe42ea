"""Larger images by transposed convolutions."""

from __future__ import annotations

import numpy as np
import pytest

from dso_packer_onnx.rewrite.enlarge import fuse_transposed_conv

from ..support.rewriting import make, rewritten, unchanged

RANDOM = np.random.default_rng(5)


@pytest.mark.parametrize("window", [(2, 2), (3, 1)])
@pytest.mark.parametrize("bias", ["", ", b"])
def test_a_transposed_convolution_without_overlap_is_a_convolution(
    window: tuple[int, int], bias: str
) -> None:
    """Each pixel of the input becomes a window of the output."""
    high, wide = window
    weights = {"w": RANDOM.normal(size=(5, 6, high, wide)).astype(np.float32)}
    if bias:
        weights["b"] = RANDOM.normal(size=6).astype(np.float32)
    model = make(
        f"""(float[batch,5,4,3] x) => (float[] y) {{
            y = ConvTranspose<kernel_shape=[{high},{wide}], strides=[{high},{wide}]>(x, w{bias})
        }}""",
        weights,
    )
    assert rewritten(model, fuse_transposed_conv).kinds == ["dso.Conv", "dso.Interleave"]


@pytest.mark.parametrize(
    "options", ["strides=[1,1]", "strides=[2,2], pads=[1,0,0,0]", "strides=[2,2], group=2"]
)
def test_other_transposed_convolutions_remain(options: str) -> None:
    """Windows that overlap, that are cut off, or that have groups."""
    weight = RANDOM.normal(size=(4, 2, 2, 2)).astype(np.float32)
    text = f"""(float[1,4,4,3] x) => (float[] y) {{
        y = ConvTranspose<kernel_shape=[2,2], {options}>(x, w) }}"""
    assert unchanged(make(text, {"w": weight}), fuse_transposed_conv)
