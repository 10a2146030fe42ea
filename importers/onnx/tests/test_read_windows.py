"""Windows, strides and scales that no image or number fits are refused, with the node."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dso_packer_onnx.read import read_model, with_shapes
from runtime.error import PackerError

from .small_models import model, node, ones, unknown, value, weight

PADS_OF_2 = {"kernel_shape": [2, 2], "pads": [2, 0, 0, 0]}
ADDED = {"strides": [2, 2], "output_padding": [2, 0]}
WINDOWS = {
    "a padding of no name": ("Conv", {"auto_pad": "FOO"}, "auto_pad, expected one of NOTSET, SAME"),
    "a stride of 0": ("Conv", {"strides": [0, 1]}, r"'strides', expected 1 to .*, found \[0, 1\]"),
    "groups that do not divide": ("Conv", {"group": 3}, "4 channels, expected 12 for W"),
    "a window larger than the image": ("Conv", {"dilations": [2, 2]}, "W is larger than the image"),
    "pads as large as the window": ("MaxPool", PADS_OF_2, "pads, expected less than the window's"),
    "padding of the output": ("ConvTranspose", ADDED, "output_padding, expected less than the"),
}


@pytest.mark.parametrize("case", WINDOWS)
def test_a_window_that_does_not_fit_is_refused(case: str) -> None:
    """ONNX Runtime refuses these, too; an image of 4 x 4 has no place for 5 x 5."""
    op_type, attributes, words = WINDOWS[case]
    weights = [] if op_type == "MaxPool" else [ones("w", 4, 4, 3, 3)]
    made = node(op_type, " ".join(["x", *(w.name for w in weights)]), "y", "bad", **attributes)
    proto = model([made], [value("x", 1, 4, 4, 4)], [unknown("y")], weights)
    with pytest.raises(PackerError) as caught:
        with_shapes(read_model(proto))
    assert re.search(rf"node 'bad' \({op_type}\): .*{words}", str(caught.value)), caught.value


@pytest.mark.parametrize("scale", [0.0, np.nan, np.inf])
def test_a_scale_that_divides_to_no_number_is_refused(scale: float) -> None:
    """A scale that an input gives is not known, and gives what ONNX gives."""
    weights = [weight("s", np.array(scale, np.float32)), weight("z", np.array(0, np.uint8))]
    nodes = [node("QuantizeLinear", "x s z", "q", "bad"), node("DequantizeLinear", "q s z", "y")]
    proto = model(nodes, [value("x", 2, 3)], [unknown("y")], weights)
    with pytest.raises(PackerError, match=r"'bad' \(QuantizeLinear\): scale of input 1, expected"):
        with_shapes(read_model(proto))
