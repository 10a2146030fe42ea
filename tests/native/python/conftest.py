"""Libraries that tests of references call."""

from __future__ import annotations

import gc
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime._core import Function

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


@pytest.fixture
def is_closed(probe: Callable[[str], Function]) -> Callable[[], bool]:
    """Return True if every counter of this test was released."""
    gc.collect()  # handles in the tracebacks of earlier tests
    before = probe("num_open")()
    return lambda: probe("num_open")() == before
