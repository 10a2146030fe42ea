"""Inputs that get their value while packing."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest

import packer
import runtime
from runtime.error import ExportError
from tests.support.command_line import COMMAND

TEXT = """
<ir_version: 10, opset_import: ["" : 23]>
g (float[1, 2, 3, 4] x, int64[4] size, float factor) => (float[N, C, H, W] y) {
  large = Resize<mode = "linear">(x, , , size)
  y = Mul(large, factor)
}
"""
X = np.random.default_rng(1).normal(size=(1, 2, 3, 4)).astype(np.float32)
SIZE = [1, 2, 5, 8]


def test_a_fixed_input_is_no_argument(tmp_path: Path) -> None:
    """The shapes that it decides are known, and the results equal ONNX Runtime's."""
    model = onnx.parser.parse_model(TEXT)
    module = packer.from_onnx(model, input_values={"size": SIZE})
    library = runtime.load(packer.export_library(module, tmp_path / "model.so"))
    factor = np.array(1.5, np.float32)
    result = np.asarray(library["main"](X, factor))
    session = onnxruntime.InferenceSession(model.SerializeToString())
    (expected,) = session.run(None, {"x": X, "size": np.array(SIZE), "factor": factor})
    assert result.shape == expected.shape == (1, 2, 5, 8)
    assert np.abs(result - expected).max() <= 1e-5 * np.abs(expected).max()


def test_the_message_about_a_shape_names_the_option(tmp_path: Path) -> None:
    """The advice of the refusal is an option that works."""
    text = TEXT.replace("mode =", "antialias = 1, mode =")
    onnx.save(onnx.parser.parse_model(text), tmp_path / "model.onnx")
    command = [*COMMAND, "export", "model.so", "--onnx", "model.onnx"]
    refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert refused.returncode == 1
    assert "--input-value" in refused.stderr
    values = ["--input-value", "size=1,2,5,8", "--input-value", "factor=1.5"]
    subprocess.run([*command, *values], cwd=tmp_path, check=True, capture_output=True)
    model = runtime.load(tmp_path / "model.so")
    assert [value.name for value in model.inputs] == ["x"]
    assert np.asarray(model["main"](X)).shape == (1, 2, 5, 8)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"siz": SIZE}, "input_values: the model has no input 'siz'; near names: 'size'"),
        ({"size": [1, 2, 5]}, r"'size': shape, expected \(4,\), found \(3,\)"),
        ({"size": [1, 2, 5, 8.5]}, "'size', expected values of int64, found"),
        ({"size": "large"}, "'size', expected values of int64, found 'large'"),
        ({"factor": 2, "x": [1.0]}, r"'x': shape, expected \(1, 2, 3, 4\), found \(1,\)"),
    ],
)
def test_a_wrong_value_is_refused(values: dict[str, Any], message: str) -> None:
    """By name, with the type and shape of the input."""
    with pytest.raises(ExportError, match=message):
        packer.from_onnx(onnx.parser.parse_model(TEXT), input_values=values)
