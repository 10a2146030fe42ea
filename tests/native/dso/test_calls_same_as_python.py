"""Scripts of calls have the same outcomes, bit for bit, through dso.h and through Python."""

from __future__ import annotations

import pytest

import packer

from ...support import needs
from ...support.dso_script import run_by_c, run_by_python, run_by_python_alone
from ...support.system_models import model
from .dso_models import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_same_outcomes(name, tmp_path) -> None:
    """Results, errors, weights and tensors after each call."""
    if name == "opencl":
        needs.opencl_device()
    lines = MODELS[name](tmp_path / "model.so")
    by_c = run_by_c(*lines)
    assert by_c == run_by_python(*lines)
    assert "tensor " in by_c


def test_system_libraries(tmp_path) -> None:
    """Two models in one library, and one that does not exist."""
    models = [model(tmp_path, number) for number in (1, 2)]
    path = packer.link_library(models, tmp_path / "both.so")
    lines = [f"load {path}"]
    for slot, prefix in enumerate(("net1_", "net2_"), start=1):
        lines += [f"system {prefix}", f"call {slot} add i:40 i:2", f"call {slot} add s:x i:2"]
    by_c = run_by_c(*lines, "system net3_")
    assert by_c == run_by_python_alone(*lines, "system net3_")
    assert "int 42" in by_c
    assert "int 82" in by_c
