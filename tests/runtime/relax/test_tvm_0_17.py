"""A model that TVM 0.17 compiled: bytecode of version 1, packed host code, bool as uint1."""

from __future__ import annotations

import platform

import numpy as np
import pytest

import runtime
from packer.cli import main

from ...support import needs
from ...support.dso_script import run_by_c, tensor, text_of
from ...support.paths import DATA

MODEL = DATA / "relax_v1" / "model.so"
NINE = np.arange(9, dtype="float32")
FOUR = NINE[:4].copy()

# The results in TVM 0.17.
MASK = [True, False, False, True, True, False, True, True, True]
MASKED = [0, -1, -1, 3, 4, -1, 6, 7, 8]
ADDED = [0.10000000149011612, 1.100000023841858, 2.0999999046325684, 3.0999999046325684]


@pytest.fixture
def model() -> runtime.Module:
    """The library has code for x86-64."""
    needs.hardware(platform.machine() == "x86_64", "x86-64")
    return runtime.load(MODEL)


def test_results_are_those_of_tvm(model) -> None:
    """Symbolic shapes, a branch, bool arguments, constants and results, shapes and tuples."""
    x, w = np.arange(12, dtype="float32").reshape(3, 4) - 5, np.arange(8, dtype="float32")
    y, flat = model["main"](x, w.reshape(4, 2))
    assert y.numpy().tolist() == [[0, 0], [16, 18], [64, 82]]
    assert flat.numpy().tolist() == [0, 0, 16, 18, 64, 82]
    assert model["scaled"](FOUR, np.array(True)).numpy().tolist() == [0, 2, 6, 13.5]
    assert model["scaled"](FOUR, np.array(False)).numpy().tolist() == ADDED
    mask, kept = model["masked"](NINE, NINE > 5)
    assert (mask.dtype, mask.numpy().tolist(), kept.numpy().tolist()) == ("bool", MASK, MASKED)
    total, shape = model["shaped"]((2, 3), (FOUR[:2].copy(), FOUR[2:].copy()))
    assert (total.numpy().tolist(), shape) == ([2, 4], (3, 2, 7))


def test_a_c_program_has_the_same_results(model) -> None:
    """Libdso reads the payload as well."""
    line = f"call 0 masked {tensor(NINE)} {tensor(NINE > 5)}"
    printed = run_by_c(f"load {MODEL}", line)
    assert text_of(np.array(MASK)) in printed
    assert text_of(np.array(MASKED, "float32")) in printed


def test_it_is_shown(model, capsys) -> None:
    """Its bytecode as TVM 0.17 prints it; inspect and check know the type."""
    assert model.get_source() == MODEL.with_suffix(".txt").read_text()
    assert main(["inspect", str(MODEL)]) == 0
    assert "relax.Executable" in capsys.readouterr().out
    assert main(["check", str(MODEL)]) == 0
    assert "pass  loader of relax.Executable: known here" in capsys.readouterr().out


def test_its_payload_is_extracted_and_packed_again(model, tmp_path, capsys) -> None:
    """Byte for byte; host code cannot be extracted."""
    assert main(["extract", str(MODEL), "-o", str(tmp_path / "parts")]) == 0
    payload = (tmp_path / "parts" / "relax_executable.bin").read_bytes()
    assert payload in MODEL.read_bytes()
    toml = str(tmp_path / "parts" / "packer.toml")
    assert main(["export", str(tmp_path / "again.so"), "--project", toml]) == 0
    assert b"relax.Executable" + payload in (tmp_path / "again.so").read_bytes()
