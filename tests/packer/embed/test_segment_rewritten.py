"""Tools that rewrite libraries leave the segment and its blob as they are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from .segments import REWRITERS, rewrite, works


@pytest.mark.parametrize("commands", REWRITERS.values(), ids=REWRITERS.keys())
def test_library_works_after(commands, linked, tmp_path) -> None:
    """Tools that rewrite the file keep segment, symbols and tree."""
    path = Path(shutil.copy(linked[0], tmp_path))
    rewrite(path, commands)
    assert works(path)
