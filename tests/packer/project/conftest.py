"""Fixtures of the tests of project files."""

from __future__ import annotations

from pathlib import Path

import numpy
import pytest

from .projects import ADD, MUL, SUB


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Sources of every kind."""
    (tmp_path / "add.c").write_text(ADD)
    (tmp_path / "sub.c").write_text(SUB)
    (tmp_path / "mul.ll").write_text(MUL)
    (tmp_path / "k.cl").write_text("kernel void scale() {}")
    numpy.save(tmp_path / "w.npy", numpy.arange(6, dtype=">f4").reshape(2, 3).T)
    return tmp_path
