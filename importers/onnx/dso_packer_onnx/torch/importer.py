"""The importer of PyTorch models, as packer finds it."""

from __future__ import annotations

from packer import Importer

from ..importer import SETTINGS

_OWN = ("state", "weight_bits", "block", "activation_bits", "options")
IMPORTER = Importer(
    "torch",
    {".py": lambda first: b"torch" in first},
    "dso_packer_onnx.torch:from_torch",
    [setting for setting in SETTINGS if setting.name in _OWN],
    title="models; importers/onnx/docs/onnx.md",
    text="a Python function that returns a PyTorch model and example inputs; FILE.py:FUNCTION too",
    takes_names=True,
)
