"""Of the tests of all importers: one object cache, and the helpers of the core's tests."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# At the end, so that installed packages are found first.
sys.path.append(str(Path(__file__).parents[1]))
# Before the first import of a helper: pytest then rewrites its assertions.
pytest.register_assert_rewrite("tests.support")
# Processes that tests start import the installed packages, not a source tree.
os.environ["PYTHONSAFEPATH"] = "1"


@pytest.fixture(scope="session", autouse=True)
def objects(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep objects in a folder of this run: kernels are compiled once."""
    before = os.environ.get("PACKER_CACHE")
    folder = tmp_path_factory.mktemp("objects")
    os.environ["PACKER_CACHE"] = str(folder)
    yield folder
    if before is None:
        del os.environ["PACKER_CACHE"]
    else:
        os.environ["PACKER_CACHE"] = before
