"""Tests whose tool is missing: skipped with the remedy, and failed where CI is set."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .support.paths import ROOT

NEEDING = """
from tests.support import needs

def test_linker():
    needs.program("ld.none")

def test_module():
    needs.module("no_such_module", "torch")
"""


def run_tests(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run two tests that need what no machine has, with the conftest of this folder."""
    (folder / "test_needing.py").write_text(NEEDING)
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p"]
    command += [
        "tests.conftest",
        f"--rootdir={folder}",
        "-o",
        "addopts=",
        str(folder / "test_needing.py"),
    ]
    return subprocess.run(
        command,
        cwd=folder,
        env={**environment, "PYTHONPATH": str(folder), **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which `tests` can be imported, and nothing else of the source tree."""
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    return tmp_path


def test_a_missing_tool_skips_and_the_summary_counts_it(folder: Path) -> None:
    """Each reason names the tool and the command that installs it."""
    done = run_tests(folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "skipped    1: needs ld.none: apt-get install ld.none" in done.stdout
    assert "skipped    1: needs no_such_module: make .venv/torch.group" in done.stdout


def test_a_missing_tool_fails_where_ci_is_set(folder: Path) -> None:
    """CI cannot leave a test out."""
    done = run_tests(folder, CI="1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed" in done.stdout
