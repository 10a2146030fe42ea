"""Pools of images."""

from __future__ import annotations

import pytest

from dso_packer_onnx.rewrite.pooling import fuse_pooling

from ..support.rewriting import make, rewritten, unchanged


@pytest.mark.parametrize(
    "pooling",
    [
        "MaxPool<kernel_shape=[3,2], strides=[2,2], pads=[1,0,1,1]>(x)",
        "MaxPool<kernel_shape=[3,3], dilations=[2,2]>(x)",
        "MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1>(x)",
        'MaxPool<kernel_shape=[3,3], strides=[2,2], auto_pad="SAME_UPPER">(x)',
        "AveragePool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1]>(x)",
        "AveragePool<kernel_shape=[3,3], strides=[2,2], pads=[1,1,1,1], count_include_pad=1>(x)",
        "AveragePool<kernel_shape=[2,2], strides=[2,2], ceil_mode=1>(x)",
        "GlobalAveragePool(x)",
        "GlobalMaxPool(x)",
    ],
)
def test_pooling_of_images_is_fused(pooling: str) -> None:
    """Rounding up and padding by name are pads; a global pooling is a window."""
    model = make(f"(float[batch,4,9,8] x) => (float[] y) {{ y = {pooling} }}")
    found = rewritten(model, fuse_pooling)
    assert (found.kinds, found.result) == (["dso.Pooling"], 1)


@pytest.mark.parametrize("kind", ["ReduceMean", "ReduceMax"])
@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axes", ["2,3", "-1,-2"])
def test_a_mean_over_the_image_is_pooling(kind: str, keepdims: int, axes: str) -> None:
    """Without keepdims, a Reshape with a symbolic batch follows."""
    model = make(
        f"""(float[batch,4,9,8] x) => (float[] y) <int64[2] axes = {{{axes}}}> {{
            y = {kind}<keepdims={keepdims}>(x, axes)
        }}"""
    )
    found = rewritten(model, fuse_pooling)
    assert found.kinds == (["dso.Pooling"] if keepdims else ["dso.Pooling", "Reshape"])
    assert "kernel" not in found.attributes("Pooling")


@pytest.mark.parametrize(
    "text",
    [
        "(float[1,4,9] x) => (float[] y) { y = MaxPool<kernel_shape=[3]>(x) }",
        "(double[1,4,9,9] x) => (double[] y) { y = MaxPool<kernel_shape=[3,3]>(x) }",
        "(float[1,c,9,9] x) => (float[] y) { y = GlobalAveragePool(x) }",
        "(float[1,4,9,9] x) => (float[] y, int64[] i) { y, i = MaxPool<kernel_shape=[3,3]>(x) }",
        "(float[1,4,9,9] x) => (float[] y) <int64[2] a = {1,2}> { y = ReduceMean(x, a) }",
        """(float[1,4,8,8] x) => (float[] y) {
            y = AveragePool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1, count_include_pad=1>(x)
        }""",
    ],
    ids=["one axis", "double", "symbolic channels", "indices", "other axes", "counted ceil"],
)
def test_any_other_pooling_remains(text: str) -> None:
    """Each for one reason."""
    assert unchanged(make(text), fuse_pooling)
