"""Fixtures of the tests of output files."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from .replaced_file import OLD


@pytest.fixture
def old(tmp_path):
    """An output that exists before the export."""
    path = tmp_path / "model.so"
    path.write_bytes(OLD)
    return path


@pytest.fixture
def shared_folder():
    """A folder that any user can reach and write."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o777)
    yield path
    path.chmod(0o777)
    shutil.rmtree(path)
