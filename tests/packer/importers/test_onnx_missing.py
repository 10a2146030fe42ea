"""The importer of models without its packages."""

from __future__ import annotations

import sys

import pytest

from packer.importers.onnx.read import read_model
from runtime.error import PackerError


def test_a_missing_package_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """None in sys.modules makes an import fail, installed or not."""
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(PackerError) as caught:
        read_model(b"")
    assert str(caught.value) == (
        "packer.from_onnx needs the package onnx: pip install 'dso-packer[onnx]'"
    )
