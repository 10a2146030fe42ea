"""Convolutions and their pads."""

from __future__ import annotations

import numpy as np
import pytest

from dso_packer_onnx.rewrite.clean import lift_constants as lift
from dso_packer_onnx.rewrite.conv import fuse_conv, fuse_pad

from ..support.rewriting import make, rewritten, unchanged

RANDOM = np.random.default_rng(1)


def weight(*shape: int) -> np.ndarray:
    """Make random weights."""
    return RANDOM.normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("text", "shape", "pads"),
    [
        ("Conv(x, w)", (6, 4, 3, 3), [0, 0, 0, 0]),
        ("Conv<pads=[1,2,0,1]>(x, w)", (6, 4, 3, 3), [1, 2, 0, 1]),
        ("Conv<strides=[2,2], pads=[1,1,1,1], group=4>(x, w)", (4, 1, 3, 3), [1, 1, 1, 1]),
        ("Conv<dilations=[2,1], group=2>(x, w)", (6, 2, 3, 2), [0, 0, 0, 0]),
        ('Conv<auto_pad="VALID">(x, w)', (5, 4, 3, 3), [0, 0, 0, 0]),
        ('Conv<auto_pad="SAME_UPPER", strides=[2,2]>(x, w)', (5, 4, 3, 3), [1, 0, 1, 1]),
        ('Conv<auto_pad="SAME_LOWER", strides=[2,2]>(x, w)', (5, 4, 3, 3), [1, 1, 1, 0]),
        (
            'Conv<auto_pad="NOTSET", strides=[1,2], pads=[1,1,1,1]>(x, w)',
            (5, 4, 2, 2),
            [1, 1, 1, 1],
        ),
    ],
)
def test_a_convolution_of_images_is_fused_with_explicit_pads(
    text: str, shape: tuple[int, ...], pads: list[int]
) -> None:
    """Padding by name follows from the extents of the image."""
    model = make(f"(float[batch,4,9,8] x) => (float[] y) {{ y = {text} }}", {"w": weight(*shape)})
    found = rewritten(model, fuse_conv)
    assert (found.kinds, found.result) == (["dso.Conv"], 1)
    assert list(found.attributes("Conv")["pads"]) == pads


def test_weights_and_biases_may_be_computed() -> None:
    """Kernels pack such a weight in each call."""
    text = "(float[1,4,9,9] x, float[6,4,3,3] w, float[6] v) => (float[] y) { y = Conv(x, w, v) }"
    assert rewritten(make(text), fuse_conv).kinds == ["dso.Conv"]


@pytest.mark.parametrize(
    "text",
    [
        "(float[1,4,9] x) => (float[] y) { y = Conv(x, w3) }",
        "(float[1,c,9,9] x) => (float[] y) { y = Conv(x, w) }",
        "(double[1,4,9,9] x) => (double[] y) { y = Conv(x, w64) }",
    ],
    ids=["one axis", "symbolic channels", "double"],
)
def test_any_other_convolution_remains(text: str) -> None:
    """The kernels have two spatial axes, weights of known extents and float32."""
    weights = {
        "w": weight(6, 4, 3, 3),
        "w3": weight(6, 4, 3),
        "w64": weight(6, 4, 3, 3).astype(float),
    }
    assert unchanged(make(text, weights), fuse_conv)


def test_zeros_that_a_pad_adds_are_those_of_the_convolution() -> None:
    """Both pads are added, and the Pad is removed with its constants."""
    model = make(
        """(float[batch,4,9,8] x) => (float[] y) {
            p = Constant<value_ints=[0,0,1,2,0,0,3,0]>() z = Pad(x, p)
            y = Conv<pads=[1,0,0,1]>(z, w)
        }""",
        {"w": weight(6, 4, 3, 3)},
    )
    found = rewritten(model, lift, fuse_conv, fuse_pad)
    assert found.kinds == ["dso.Conv"]
    assert list(found.attributes("Conv")["pads"]) == [2, 2, 3, 1]
    assert set(found.model.graph.initializers) == {"w"}


@pytest.mark.parametrize(
    "pad",
    [
        "Pad(x, p, one)",
        'Pad<mode="reflect">(x, p)',
        "Pad(x, channels)",
    ],
)
def test_another_pad_remains(pad: str) -> None:
    """A convolution adds zeros, and only around images."""
    weights = {
        "p": np.array([0, 0, 1, 1, 0, 0, 1, 1]),
        "channels": np.array([0, 1, 0, 0, 0, 1, 0, 0]),
        "one": np.float32(1),
    }
    channels = 6 if "channels" in pad else 4
    model = make(
        f"(float[1,4,9,9] x) => (float[] y) {{ z = {pad} y = Conv(z, w) }}",
        {**weights, "w": weight(6, channels, 3, 3)},
    )
    assert rewritten(model, fuse_conv, fuse_pad).kinds == ["Pad", "dso.Conv"]


def test_a_pad_with_two_readers_remains_for_the_other() -> None:
    """The convolution reads the image without the zeros."""
    model = make(
        """(float[1,4,9,9] x) => (float[] y, float[] z) {
            z = Pad(x, p, , axes) y = Conv(z, w)
        }""",
        {"w": weight(6, 4, 3, 3), "p": np.array([1, 1, 0, 1]), "axes": np.array([-2, 3])},
    )
    found = rewritten(model, fuse_conv, fuse_pad)
    assert sorted(found.kinds) == ["Pad", "dso.Conv"]
    assert list(found.attributes("Conv")["pads"]) == [1, 1, 0, 1]
