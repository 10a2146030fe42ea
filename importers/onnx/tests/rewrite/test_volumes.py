"""Networks along three axes as networks of images."""

from __future__ import annotations

import numpy as np
import pytest

from dso_packer_onnx.rewrite.arrange import simplify_views
from dso_packer_onnx.rewrite.pooling import fuse_pooling
from dso_packer_onnx.rewrite.volumes import raise_volumes

from ..support.rewriting import make, rewritten, unchanged

RANDOM = np.random.default_rng(3)
WEIGHTS = {
    "w": RANDOM.normal(size=(4, 4, 3, 2, 3)).astype(np.float32),
    "d": RANDOM.normal(size=(4, 1, 2, 3, 1)).astype(np.float32),
    "g": RANDOM.normal(size=(4, 2, 4, 3, 2)).astype(np.float32),
    "u": RANDOM.normal(size=(4, 4, 1, 3, 3)).astype(np.float32),
    "c": RANDOM.normal(size=(4, 1, 1, 1)).astype(np.float32),
    "v": RANDOM.random(4).astype(np.float32),
    "h": np.float32(0.5),
}
# Networks: y of x, both with 4 channels.
CHAINS = {
    "a convolution": "y = Conv<pads=[2,1,0,1,0,2], strides=[2,1,2]>(x, w, v)",
    "a grouped one": "y = Conv<group=4, dilations=[3,1,2]>(x, d)",
    "a window in images": "y = Conv<pads=[0,1,1,0,1,1]>(x, u)",
    "a stride along the depth": "y = Conv<strides=[2,1,1]>(x, u)",
    "padded by name": 'y = Conv<auto_pad="SAME_LOWER", strides=[2,2,1]>(x, w)',
    "a transposed one": "y = ConvTranspose<strides=[2,1,3], pads=[1,0,1,0,1,1]>(x, w, v)",
    "two groups of it": "y = ConvTranspose<group=2, strides=[2,2,2], output_padding=[1,1,0]>(x, g)",
    "phases without taps": "y = ConvTranspose<strides=[3,2,2], dilations=[2,1,1]>(x, u)",
    "a computed weight": "r = Tanh(w) y = Conv<pads=[1,0,0,1,0,0]>(x, r)",
    "channels by themselves": "a = Conv(x, w) b = Add(c, a) e = BatchNormalization(b, v, v, v, v)"
    " y = PRelu(e, c)",
    "a branch": "a = Conv<pads=[1,1,1,1,0,1]>(x, w) b = Add(x, a) e = Concat<axis=1>(a, b)"
    " y = Clip(e, h)",
    "pools of images": "a = Conv(x, u) b = MaxPool<kernel_shape=[2,2,1], ceil_mode=1>(a)"
    " y = AveragePool<kernel_shape=[1,2,1], strides=[1,2,1]>(b)",
}
POOLS = {
    "greatest": "y = MaxPool<kernel_shape=[2,3,1], strides=[2,1,1], ceil_mode=1>(x)",
    "of depths": "y = MaxPool<kernel_shape=[3,1,1], pads=[1,0,0,2,0,0], dilations=[2,1,1]>(x)",
    "counted pads": "y = AveragePool<kernel_shape=[3,2,3], pads=[1,0,1,1,1,1],"
    " count_include_pad=1>(x)",
    "by name": 'y = AveragePool<kernel_shape=[3,2,2], auto_pad="SAME_UPPER", strides=[2,2,2]>(x)',
    "the whole": "a = GlobalMaxPool(x) b = GlobalAveragePool(x) y = Concat<axis=1>(a, b)",
    "no window": "y = AveragePool<kernel_shape=[1,1,1]>(x)",
}


@pytest.mark.parametrize("name", CHAINS)
def test_values_of_a_network_along_three_axes_are_images(name: str) -> None:
    """A Transpose before and after all operators; the results are the same."""
    model = make(f"(float[2,4,6,5,7] x) => (float[] y) {{ {CHAINS[name]} }}", WEIGHTS)
    found = rewritten(model, raise_volumes, fuse_pooling, simplify_views)
    assert found.kinds.count("Transpose") == 2
    assert {*found.kinds} - {"Tanh"} <= {
        *("Add", "BatchNormalization", "Clip", "Concat", "PRelu", "Reshape", "Slice", "Transpose"),
        *("dso.Conv", "dso.Interleave", "dso.Pooling"),
    }


@pytest.mark.parametrize("name", POOLS)
def test_pools_alone_need_no_transpose(name: str) -> None:
    """Each is a pool of images, and one of rows along the depth."""
    model = make(f"(float[2,4,6,5,7] x) => (float[] y) {{ {POOLS[name]} }}", WEIGHTS)
    found = rewritten(model, raise_volumes, fuse_pooling, simplify_views)
    assert {*found.kinds} <= {"Concat", "Reshape", "dso.Pooling"}


def test_factors_of_channels_are_images_for_one_volume() -> None:
    """Of several volumes they would be repeated for each depth, so that the product remains."""
    text = "a = Conv(x, w) b = GlobalAveragePool(a) e = Sigmoid(b) y = Mul(a, e)"
    last = []
    for batch in (1, 2):
        model = make(f"(float[{batch},4,6,5,7] x) => (float[] y) {{ {text} }}", WEIGHTS)
        last.append(rewritten(model, raise_volumes, simplify_views).kinds[-1])
    assert last == ["Transpose", "Mul"]


@pytest.mark.parametrize(
    "text",
    [
        "(float[2,4,6,5,7] x) => (float[] y) { y = Relu(x) }",
        "(float[2,4,9,9] x) => (float[] y) { y = MaxPool<kernel_shape=[3,3]>(x) }",
        "(float[2,4,6,5,7] x, float[4,4,3,3,3] u) => (float[] y) { y = ConvTranspose(x, u) }",
        "(double[2,4,6,5,7] x) => (double[] y) { y = MaxPool<kernel_shape=[3,3,3]>(x) }",
        "(float[2,4,6,5,7] x) => (float[] y, int64[] i)"
        " { y, i = MaxPool<kernel_shape=[3,3,3]>(x) }",
    ],
    ids=["no convolution", "images", "weights computed", "another type", "places"],
)
def test_other_operators_remain(text: str) -> None:
    """Each for one reason."""
    assert unchanged(make(text), raise_volumes)
