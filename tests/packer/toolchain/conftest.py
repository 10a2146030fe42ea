"""Fixtures of the tests of compilers."""

from __future__ import annotations

import pytest

from ..compilers import write


@pytest.fixture
def no_compiler_variables(monkeypatch):
    """Remove the variables CC, CXX and NVCC."""
    for name in ("CC", "CXX", "NVCC"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def add_c(tmp_path):
    """A C source."""
    return write(tmp_path / "add.c", "int add(int a, int b) { return a + b; }\n")
