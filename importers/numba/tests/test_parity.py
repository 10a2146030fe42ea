"""A sample of `make parity`: functions of Numba's own tests give the same bits without Numba."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

_PARITY = Path(__file__).parent / "parity"
_SAMPLE = ["test_casting", "test_recursion"]


def test_functions_of_numbas_tests_give_the_same_bits_elsewhere(tmp_path: Path) -> None:
    """In a process that cannot import Numba, llvmlite and NumPy."""
    counts = tmp_path / "counts.json"
    words = [sys.executable, "-P", str(_PARITY), "--json", str(counts), *_SAMPLE]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(counts.read_text())["all"]
    assert found["same"] + found.get("raised the same", 0) >= 15, done.stdout


def test_the_counts_of_all_files_have_no_fault() -> None:
    """Of the whole list, which `make parity` runs."""
    stored = json.loads((_PARITY / "counts.json").read_text())
    total = stored["all"]
    assert total["same"] >= 200
    assert "different" not in total and "lost" not in total
    outcomes = ("same", "raised the same", "refused")
    assert total["recorded"] == sum(total.get(name, 0) for name in outcomes)
