"""One library of each example file for all tests here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import packer
import runtime

EXAMPLES = Path(__file__).parent / "examples"


def _exported(name: str, folder: Path) -> Path:
    module = packer.from_numba(EXAMPLES / f"{name}.py")
    return packer.export_library(module, folder / f"{name}.so")


@pytest.fixture(scope="session")
def values_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of examples/values.py."""
    return _exported("values", tmp_path_factory.mktemp("values"))


@pytest.fixture(scope="session")
def values(values_library: Path) -> Any:
    """Its functions."""
    return runtime.load(values_library)


@pytest.fixture(scope="session")
def elements(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The functions of examples/elements.py."""
    return runtime.load(_exported("elements", tmp_path_factory.mktemp("elements")))
