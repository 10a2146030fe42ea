"""Fixtures of the tests of interchange."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import packer

from .interchanged import device, host


@pytest.fixture(scope="module")
def build(tmp_path_factory) -> Callable[[int], Path]:
    """``build(number)``: a library over a device module, with a function that gives `number`."""
    folder = tmp_path_factory.mktemp("built")

    def build(number: int) -> Path:
        path = folder / f"{number}.so"
        if not path.exists():
            root = host(number)
            root.import_module(device("kernel"))
            packer.export_library(root, path)
        return path

    return build
