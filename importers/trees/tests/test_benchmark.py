"""The benchmark of forests runs; it compares the scores with LightGBM's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "benchmarks/trees.py"


def test_the_benchmark_runs() -> None:
    """Its short form, with a row for each forest and form of rows."""
    command = [sys.executable, "-P", SCRIPT, "--quick"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert len(shown.splitlines()) == 10
