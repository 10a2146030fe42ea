"""What the tests of output files share."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest

from ...support.replaced_file import OLD


@pytest.fixture
def old(tmp_path):
    """An output that stood there before."""
    path = tmp_path / "model.so"
    path.write_bytes(OLD)
    return path


@pytest.fixture
def shared_folder():
    """A folder that anybody can reach and write."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o777)
    yield path
    path.chmod(0o777)
    shutil.rmtree(path)
