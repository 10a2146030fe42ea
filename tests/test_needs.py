"""Tests whose tool is missing: skipped with the remedy, and failed where CI is set."""

from __future__ import annotations

import os
import re
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
    needs.module("no_such_module.data", "torch")
"""
MORE = """
def test_that_needs_nothing():
    pass
"""


def run_tests(
    folder: Path, *options: str, tests: str = "", text: str = NEEDING, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run tests, by default two that need what no machine has, with the conftest of this folder."""
    (folder / "test_needing.py").write_text(text)
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p"]
    command += [
        "tests.conftest",
        f"--rootdir={folder}",
        "-o",
        "addopts=",
        tests or str(folder / "test_needing.py"),
        *options,
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


# Programs that are broken or too old: the text of the program, and the reason.
UNFIT = {
    "cargo": (
        "printf 'error: rustup found no toolchain\nhelp: run rustup default stable\n' >&2; exit 1",
        "--version exits with 1: error: rustup found no toolchain",
    ),
    "cmake": ("echo 'cmake version 3.10.2'", "is 3.10, expected 3.18 or later"),
    "openssl": ("echo OpenSSL 1.1.1w", "is 1.1, expected 3.0 or later"),
    "aarch64-linux-gnu-gcc": (
        "echo 'stdlib.h: No such file or directory' >&2; exit 1",
        "stdlib.h: No such file or directory",
    ),
    "mold": ("echo 'mold: libcrypto.so.3: cannot open shared object file' >&2; exit 127", "exits"),
}


@pytest.mark.parametrize("variables", [{}, {"CI": "1"}], ids=["skips", "fails"])
def test_a_tool_that_cannot_run_the_tests(variables, folder: Path) -> None:
    """It is skipped with what the tool says; CI cannot leave it out."""
    tools, tests = folder / "bin", ["from tests.support import needs"]
    tools.mkdir()
    for number, (name, (text, _reason)) in enumerate(UNFIT.items()):
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
        tests.append(f"def test_{number}():\n    needs.program({name!r})")
    path = f"{tools}:{os.environ['PATH']}"
    done = run_tests(folder, text="\n".join(tests), PATH=path, **variables)
    for name, (_text, reason) in UNFIT.items():
        said = re.escape(f"needs {name} that works: {tools / name}: ") + f".*{re.escape(reason)}"
        assert re.search(said, done.stdout), done.stdout + done.stderr
    assert done.returncode == len(variables)
    assert f"{len(UNFIT)} {'failed' if variables else 'skipped'} in" in done.stdout


def test_a_machine_without_cpp(folder: Path) -> None:
    """A test that fails because of it is skipped, and no other one."""
    (folder / "bin").mkdir()
    text = "import subprocess\n"
    for name in ("g++", "none"):
        text += f"def test_{len(name)}():\n    subprocess.run([{name!r}])\n"
    path = str(folder / "bin")
    done = run_tests(folder, text=text, PATH=path)
    assert "1 failed, 1 skipped" in done.stdout, done.stdout + done.stderr
    assert "skipped    1: needs g++: apt-get install g++" in done.stdout
    assert "2 failed" in run_tests(folder, text=text, PATH=path, CI="1").stdout


def test_a_module_that_cannot_be_imported(folder: Path) -> None:
    """The system may lack a library of a package."""
    (folder / "torch.py").write_text("raise OSError('libcudart.so.13: cannot open')")
    text = "from tests.support import needs\nneeds.module('torch', 'torch')\n"
    done = run_tests(folder, text=text)
    assert "needs torch that can be imported: libcudart.so.13: cannot open" in done.stdout


def test_skipped_tests_alone_run_again(folder: Path) -> None:
    """Their names are written to a file, which pytest reads after the packages are installed."""
    done = run_tests(folder, f"--skipped={folder}/skipped", text=f"{NEEDING}{MORE}")
    assert "1 passed, 2 skipped" in done.stdout, done.stdout + done.stderr
    (folder / "no_such_module").mkdir()
    (folder / "no_such_module/data.py").touch()
    done = run_tests(folder, tests=f"@{folder}/skipped", text=f"{NEEDING}{MORE}", CI="1")
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr


def test_a_missing_tool_fails_where_ci_is_set(folder: Path) -> None:
    """CI cannot leave a test out."""
    done = run_tests(folder, CI="1")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed" in done.stdout
