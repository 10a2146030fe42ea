"""Networks along one axis as networks of images of one row."""

from __future__ import annotations

import numpy as np
import pytest

from dso_packer_onnx.rewrite.arrange import simplify_views
from dso_packer_onnx.rewrite.sequences import raise_sequences

from ..support.rewriting import make, rewritten, unchanged

RANDOM = np.random.default_rng(3)
WEIGHTS = {
    "w": RANDOM.normal(size=(4, 4, 3)).astype(np.float32),
    "d": RANDOM.normal(size=(4, 1, 2)).astype(np.float32),
    "i": RANDOM.integers(-9, 9, (4, 4, 3)).astype(np.int8),
    "c": RANDOM.normal(size=(4, 1)).astype(np.float32),
    "v": RANDOM.random(4).astype(np.float32),
    "h": np.float32(0.5),
    "z": np.int8(3),
    "p": np.array([0, 0, 2, 0, 0, 1]),
    "q": np.array([1, 2]),
    "one": np.array([1]),
    "two": np.array([2]),
    "zero": np.array([0]),
    "minus": np.array([-1]),
    "k": np.float32(0.1),
}
# Networks: y of x, both with 4 channels.
CHAINS = {
    "a convolution": "y = Conv<pads=[2,1], strides=[2]>(x, w, v)",
    "a grouped one": "y = Conv<group=4, dilations=[3]>(x, d)",
    "a transposed one": "y = ConvTranspose<strides=[2], output_padding=[1], pads=[1,0]>(x, w)",
    "one of a given length": "y = ConvTranspose<strides=[2], output_shape=[18]>(x, w)",
    "padded by name": 'y = Conv<auto_pad="SAME_UPPER">(x, w)',
    "pools": "a = MaxPool<kernel_shape=[2], strides=[2], ceil_mode=1>(x)"
    " b = AveragePool<kernel_shape=[3], pads=[1,1], count_include_pad=1>(a)"
    " g = GlobalAveragePool(x) y = Mul(b, g)",
    "channels by themselves": "a = Conv(x, w) b = Add(c, a) e = BatchNormalization(b, v, v, v, v)"
    " y = PRelu(e, c)",
    "a branch": "a = Conv<pads=[1,1]>(x, w) b = Add(x, a) e = Concat<axis=1>(a, b) y = Clip(e, h)",
    "a pad": "a = Pad(x, p, h) y = Conv(a, w)",
    "a pad of an axis": "a = Pad(x, q, , minus) y = Conv(a, w)",
    "a slice": "a = Conv<pads=[2,2]>(x, w) y = Slice(a, one, minus, two)",
    "a slice of the first axes": "a = Conv(x, w) y = Slice(a, zero, one, zero)",
    "a computed weight": "u = Tanh(w) y = Conv(x, u)",
    "integers": "a = QuantizeLinear(x, k, z) b = DequantizeLinear(a, k, z)"
    " e = DequantizeLinear(i, k, z) f = Conv(b, e) y = QuantizeLinear(f, k, z)",
}


@pytest.mark.parametrize("name", CHAINS)
def test_no_operator_of_a_network_along_one_axis_remains(name: str) -> None:
    """One Reshape before and one after all of them; the results are the same."""
    kind = "int8" if name == "integers" else "float"
    model = make(f"(float[2,4,9] x) => ({kind}[] y) {{ {CHAINS[name]} }}", WEIGHTS)
    found = rewritten(model, raise_sequences, simplify_views)
    assert found.kinds.count("Reshape") == 2
    assert found.kinds[0] in ("Reshape", "DequantizeLinear", "Tanh")
    assert found.kinds[-1] == "Reshape"


@pytest.mark.parametrize(
    "text",
    [
        "(float[2,4,9] x) => (float[] y) { y = Relu(x) }",
        "(float[2,4,9,9] x) => (float[] y) { y = MaxPool<kernel_shape=[3,3]>(x) }",
        "(float[2,4,9] x, float[4,4,3] u) => (float[] y) { y = ConvTranspose(x, u) }",
        "(float[2,4,9] x) => (float[] y, int64[] i) { y, i = MaxPool<kernel_shape=[3]>(x) }",
    ],
    ids=["no convolution", "images", "weights computed", "places"],
)
def test_other_operators_remain(text: str) -> None:
    """Each for one reason."""
    assert unchanged(make(text), raise_sequences)
