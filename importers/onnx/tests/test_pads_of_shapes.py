"""Pads that a model computes of the shape of an image, as convolutions of TensorFlow have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import packer
import runtime

TEXT = """<ir_version: 8, opset_import: ["" : 17]>
same (float[b, 3, h, w] x, float[4, 3, 3, 3] weight) => (float[b, 4, p, q] y)
  <float stride = {2}, float one = {1}, float two = {2}, int64[1] first = {2}, int64[1] last = {4},
   int64[1] zero = {0}, int64[1] halves = {2}, int64[2] nothing = {0, 0}, float least = {0}>
{
  shape = Shape (x)
  extents = Slice (shape, first, last, zero)
  size = Cast <to = 1> (extents)
  quotient = Div (size, stride)
  count = Ceil (quotient)
  before = Sub (count, one)
  covered = Mul (before, stride)
  reach = Add (covered, two)
  whole = Add (reach, one)
  missing = Sub (whole, size)
  clipped = Clip (missing, least)
  total = Cast <to = 7> (clipped)
  begin = Div (total, halves)
  end = Sub (total, begin)
  pads = Concat <axis = 0> (nothing, begin, nothing, end)
  padded = Pad (x, pads)
  y = Conv <kernel_shape = [3, 3], strides = [2, 2]> (padded, weight)
}"""


def test_pads_of_open_extents_are_expressions(tmp_path: Path) -> None:
    """Of one library for images of any size; odd and even ones have other pads."""
    model = onnx.parser.parse_model(TEXT)
    weight = np.random.default_rng(1).normal(size=(4, 3, 3, 3)).astype(np.float32)
    made = packer.from_onnx(model)
    main = runtime.load(packer.export_library(made, tmp_path / "m.so"))["main"]
    session = onnxruntime.InferenceSession(model.SerializeToString())
    for shape in ((1, 3, 33, 20), (2, 3, 7, 4), (1, 3, 3, 64)):
        x = np.random.default_rng(shape[2]).normal(size=shape).astype(np.float32)
        (expected,) = session.run(None, {"x": x, "weight": weight})
        np.testing.assert_allclose(main(x, weight).numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dynamic", [[], ["b"]])
def test_pads_of_a_shape_are_constants(dynamic: list[str], tmp_path: Path) -> None:
    """Through Slice, Cast, Ceil, Clip and Concat, with a fixed and a symbolic batch."""
    model = onnx.parser.parse_model(TEXT)
    random = np.random.default_rng(1)
    weight = random.normal(size=(4, 3, 3, 3)).astype(np.float32)
    for batch in (1, 3) if dynamic else (2,):
        x = random.normal(size=(batch, 3, 33, 20)).astype(np.float32)
        shapes = {"x": ("b", 3, 33, 20) if dynamic else x.shape}
        made = packer.from_onnx(model, shapes, dynamic)
        main = runtime.load(packer.export_library(made, tmp_path / f"{batch}.so"))["main"]
        session = onnxruntime.InferenceSession(model.SerializeToString())
        (expected,) = session.run(None, {"x": x, "weight": weight})
        np.testing.assert_allclose(main(x, weight).numpy(), expected, rtol=1e-4, atol=1e-5)
