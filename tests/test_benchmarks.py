"""benchmarks/run.py: a subject that cannot run here does not end the others."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from .support.paths import ROOT

SUBJECTS = ("trust", "levels")


def test_a_subject_that_cannot_run_says_so(tmp_path) -> None:
    """Its table has the reason, and the next subject is measured."""
    samples = tmp_path / "samples.json"
    command = [sys.executable, ROOT / "benchmarks/run.py", "--json", samples]
    command += [f"--only={name}" for name in SUBJECTS]
    environment = os.environ | {"CC": "false"}
    del environment["PYTHONSAFEPATH"]  # its files import each other
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    tables = json.loads(samples.read_text())["tables"]
    assert [table["subject"] for table in tables] == list(SUBJECTS)
    for table in tables:
        (row,) = table["rows"]
        assert row["absent"].startswith("cannot run: ")
        assert "exited with 1" in row["absent"]
        assert row["absent"] in ran.stdout
