"""Transposed convolutions as convolutions, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest

from dso_packer_onnx.read import read_model, with_shapes
from dso_packer_onnx.rewrite.epilogue import fuse_activation
from dso_packer_onnx.rewrite.scale import fold_batch_norm
from dso_packer_onnx.rewrite.transposed import fuse_transposed_conv, move_activations

from ..support.rewriting import make, rewritten, unchanged

RANDOM = np.random.default_rng(5)
OPTIONS = {
    "plain": "",
    "equal pads": "pads=[1,1,1,1]",
    "other pads": "pads=[0,1,2,0]",
    "pads wider than the window": "pads=[4,3,0,0]",
    "dilations": "dilations=[2,3], pads=[1,0,0,1]",
    "upper": 'auto_pad="SAME_UPPER"',
    "lower": 'auto_pad="SAME_LOWER"',
    "valid": 'auto_pad="VALID"',
    "groups": "group=3, pads=[0,1,1,0]",
    "groups with pads wider than the window": "group=3, pads=[4,3,0,0]",
    "groups with dilations": "group=3, dilations=[3,2]",
}


def weights_of(channels: int, outputs: int, *window: int, groups: int = 1) -> dict[str, np.ndarray]:
    """Random weights and a bias."""
    weight = RANDOM.normal(size=(channels, outputs, *window)).astype(np.float32)
    return {"w": weight, "b": RANDOM.normal(size=outputs * groups).astype(np.float32)}


def transposed(extents: str, options: str) -> str:
    """Return the text of a model."""
    options = f"<{options}>" if options else ""
    return f"(float[{extents}] x) => (float[] y) {{ y = ConvTranspose{options}(x, w, b) }}"


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("options", OPTIONS)
def test_images_are_enlarged_by_convolutions(stride: int, kernel: int, options: str) -> None:
    """Strides and windows of other lengths along the other axis; the batch is open."""
    text = f"strides=[{stride},{4 - stride}], {OPTIONS[options]}".rstrip(", ")
    weights = weights_of(6, 2, kernel, 6 - kernel, groups=3 if "group" in options else 1)
    found = rewritten(make(transposed("batch,6,5,7", text), weights), fuse_transposed_conv)
    assert set(found.kinds) <= {"dso.Conv", "dso.Interleave"}


@pytest.mark.parametrize("stride", [2, 3])
@pytest.mark.parametrize("kernel", [1, 3, 4])
@pytest.mark.parametrize("group", [1, 3])
def test_the_last_pixels_of_the_output_are_there(stride: int, kernel: int, group: int) -> None:
    """Pixels that no window reaches are the bias."""
    text = f"strides=[{stride},{stride}], output_padding=[{stride - 1},1], group={group}"
    weights = weights_of(3, 2, kernel, kernel, groups=group)
    found = rewritten(make(transposed("2,3,4,1", text), weights), fuse_transposed_conv)
    assert set(found.kinds) <= {"dso.Conv", "dso.Interleave"}


@pytest.mark.parametrize("mode", ["", ', auto_pad="SAME_UPPER"', ', auto_pad="SAME_LOWER"'])
@pytest.mark.parametrize("extents", [(8, 10), (9, 9), (11, 13)])
def test_the_pads_follow_from_the_extents_of_the_output(
    mode: str, extents: tuple[int, int]
) -> None:
    """An odd sum of pads has one more at the end or at the begin."""
    text = f"strides=[2,2], output_shape=[{extents[0]},{extents[1]}]{mode}"
    model = make(transposed("1,3,5,6", text), weights_of(3, 2, 4, 3))
    found = rewritten(ir.to_proto(with_shapes(read_model(model))), fuse_transposed_conv)
    assert set(found.kinds) == {"dso.Conv", "dso.Interleave"}


@pytest.mark.parametrize(("kernel", "convolutions"), [(2, 1), (3, 4), (4, 1), (5, 4)])
def test_phases_have_one_window_where_few_taps_are_zero(kernel: int, convolutions: int) -> None:
    """With 3 taps and a stride of 2, 7 of 16 taps were zeros."""
    text = transposed("1,5,32,32", "strides=[2,2]")
    found = rewritten(make(text, weights_of(5, 16, kernel, kernel)), fuse_transposed_conv)
    assert found.kinds == ["dso.Conv"] * convolutions + ["dso.Interleave"]


@pytest.mark.parametrize("options", ["", "pads=[1,0,2,1]", "strides=[2,1], dilations=[1,2]"])
def test_windows_of_one_pixel_do_not_overlap(options: str) -> None:
    """The first layer of a generator: a product, with a window of one pixel."""
    model = make(transposed("batch,6,1,1", options), weights_of(6, 16, 4, 4))
    found = rewritten(model, fuse_transposed_conv)
    assert found.kinds == ["dso.Conv", "dso.Interleave"]
    assert found.node("Conv").inputs[1].shape[2:] == (1, 1)


def test_a_batch_normalization_is_folded_first() -> None:
    """And the convolutions have its factors."""
    text = """(float[2,3,4,4] x) => (float[] y) {
        t = ConvTranspose<strides=[2,2]>(x, w, b) y = BatchNormalization(t, b, b, b, v) }"""
    weights = weights_of(3, 6, 4, 4) | {"v": np.full(6, 0.5, np.float32)}
    found = rewritten(make(text, weights), fold_batch_norm, fuse_transposed_conv)
    assert found.kinds == ["dso.Conv", "dso.Interleave"]


@pytest.mark.parametrize("kernel", [3, 4])
@pytest.mark.parametrize("activation", ["Relu(t)", "Clip(t, low, high)", "Gelu(t)"])
def test_an_activation_is_part_of_the_convolutions(activation: str, kernel: int) -> None:
    """Of one convolution or of each."""
    text = f"""(float[2,3,16,16] x) => (float[] y) <float low = {{-0.5}}, float high = {{1}}> {{
        t = ConvTranspose<strides=[2,2]>(x, w, b) y = {activation} }}"""
    rules = (fuse_transposed_conv, move_activations, fuse_activation)
    found = rewritten(make(text, weights_of(3, 16, kernel, kernel)), *rules)
    assert set(found.kinds) == {"dso.Conv", "dso.Interleave"}


def test_an_activation_of_pixels_that_others_read_remains() -> None:
    """They are placed without it too."""
    text = """(float[2,3,4,4] x) => (float[] y) {
        t = ConvTranspose<strides=[2,2]>(x, w, b) r = Relu(t) y = Mul(r, t) }"""
    model = make(text, weights_of(3, 6, 4, 4))
    found = rewritten(model, fuse_transposed_conv, move_activations)
    assert (found.result, found.kinds[2:]) == (0, ["Relu", "Mul"])


def test_few_outputs_share_one_convolution() -> None:
    """Kernels compute whole blocks of them."""
    model = make(transposed("1,5,32,32", "strides=[2,2]"), weights_of(5, 3, 3, 3))
    assert rewritten(model, fuse_transposed_conv).kinds == ["dso.Conv", "dso.Interleave"]


def test_weights_that_are_computed_remain() -> None:
    """They are known at a call only."""
    text = "(float[1,4,4,3] x, float[4,2,2,2] w) => (float[] y) { y = ConvTranspose(x, w) }"
    assert unchanged(make(text), fuse_transposed_conv)
