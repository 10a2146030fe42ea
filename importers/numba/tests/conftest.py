"""One library of each example file for all tests here, and one object cache."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import packer
import runtime

# Processes that tests start import the installed packages, not a source tree.
os.environ["PYTHONSAFEPATH"] = "1"
EXAMPLES = Path(__file__).parent / "examples"


@pytest.fixture(scope="session", autouse=True)
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep objects in a folder of this run."""
    before = os.environ.get("PACKER_CACHE")
    folder = tmp_path_factory.mktemp("objects")
    os.environ["PACKER_CACHE"] = str(folder)
    yield folder
    if before is None:
        del os.environ["PACKER_CACHE"]
    else:
        os.environ["PACKER_CACHE"] = before


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
