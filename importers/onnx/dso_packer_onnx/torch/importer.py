"""The importer of PyTorch models, as packer finds it."""

from __future__ import annotations

from packer import Importer, Setting

IMPORTER = Importer(
    "torch",
    {".py": lambda first: b"torch" in first},
    "dso_packer_onnx.torch:from_torch",
    [Setting("options", "strings", "Further options for the compiler.")],
    title="models; importers/onnx/docs/onnx.md",
    text="a Python function that returns a PyTorch model and example inputs; FILE.py:FUNCTION too",
    takes_names=True,
)
