"""One object cache for all tests here: the kernels are compiled once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


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
