"""Libraries that tests of references call."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from ...support.paths import C_SOURCES


@pytest.fixture
def probe_file(compile_library: Callable[..., Path], tmp_path: Path) -> Path:
    """A copy of probe.c's library, of this test alone."""
    path = tmp_path / "probe.so"
    path.write_bytes(compile_library((C_SOURCES / "probe.c").read_text()).read_bytes())
    return path


@pytest.fixture
def functions_file(compile_library: Callable[..., Path], tmp_path: Path) -> Path:
    """The same of functions.c."""
    path = tmp_path / "functions.so"
    path.write_bytes(compile_library((C_SOURCES / "functions.c").read_text()).read_bytes())
    return path
