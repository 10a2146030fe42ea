"""A model in ONNX's text form, exported and called beside ONNX Runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import packer
import runtime

HEAD = '<ir_version: 10, opset_import: ["" : 23]> g '


def parsed(text: str) -> onnx.ModelProto:
    """Parse a model without its head."""
    model: onnx.ModelProto = onnx.parser.parse_model(HEAD + text)
    return model


def main_of(model: onnx.ModelProto, folder: Path) -> Any:
    """Export and load a model; return its function."""
    module, one_level = packer.from_onnx(model), packer.Build(cpu=())
    return runtime.load(packer.export_library(module, folder / "m.so", build=one_level))["main"]


def compare(model: onnx.ModelProto, calls: list[list[Any]], folder: Path) -> Any:
    """Call a model with arrays, and compare the results; return its function."""
    main = main_of(model, folder)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    names = [one.name for one in session.get_inputs()]
    for arrays in calls:
        expected = session.run(None, dict(zip(names, arrays, strict=True)))
        found = main(*arrays)
        made = found if isinstance(found, tuple) else [found]
        for one, wanted in zip(made, expected, strict=True):
            assert (one.shape, str(one.dtype)) == (wanted.shape, str(wanted.dtype))
            np.testing.assert_allclose(one.numpy(), wanted, rtol=1e-5, atol=1e-6)
    return main
