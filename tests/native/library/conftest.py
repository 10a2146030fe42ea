"""The host code that tests of the context load."""

from __future__ import annotations

from pathlib import Path

import pytest

import runtime

from ...support.importing import HOST


@pytest.fixture
def host_path(compile_library, tmp_path) -> Path:
    """A copy of the compiled host.c: a separate library for each test."""
    path = tmp_path / "host.so"
    path.write_bytes(compile_library(HOST.read_text()).read_bytes())
    return path


@pytest.fixture
def host(host_path) -> runtime.Module:
    """The library, loaded."""
    return runtime.load(host_path)
