"""Scripts of calls have the same outcomes, bit for bit, through dso.h and through Python."""

from __future__ import annotations

import pytest

from ...support import needs
from ...support.dso_models import MODELS
from ...support.dso_script import run_by_c, run_by_python


@pytest.mark.parametrize("name", MODELS)
def test_same_outcomes(name, tmp_path) -> None:
    """Results, errors, weights and tensors after each call."""
    if name == "opencl":
        needs.opencl_device()
    lines = MODELS[name](tmp_path / "model.so")
    by_c = run_by_c(*lines)
    assert by_c == run_by_python(*lines)
    assert "tensor " in by_c
