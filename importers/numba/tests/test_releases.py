"""Releases of Numba that are not known to work: refused, unless --force says otherwise."""

from __future__ import annotations

import os
import subprocess
from importlib.metadata import version
from pathlib import Path

import pytest

import runtime
from dso_packer_numba.versions import KNOWN
from tests.support.command_line import COMMAND


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """A command that exports one function."""
    script = tmp_path / "script.py"
    script.write_text(
        "from numba import njit\n\n\n@njit('int64(int64)')\ndef next(x):\n    return x + 1\n"
    )
    return [*COMMAND, "export", str(tmp_path / "made.so"), "--numba", str(script)]


@pytest.fixture
def unknown(tmp_path: Path) -> dict[str, str]:
    """An environment in which the metadata of the Numba that is installed name another release."""
    packages = tmp_path / "packages" / "numba-0.99.0.dist-info"
    packages.mkdir(parents=True)
    (packages / "METADATA").write_text("Metadata-Version: 2.1\nName: numba\nVersion: 0.99.0\n")
    return {**os.environ, "PYTHONPATH": str(packages.parent)}


def _run(words: list[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words, env=environment, capture_output=True, text=True, check=False, timeout=300
    )


def test_these_tests_run_with_a_known_release() -> None:
    """`make test-numba NUMBA=0.67.0` runs them with the older one."""
    assert version("numba") in KNOWN
    assert len(KNOWN) == 2


def test_an_unknown_release_is_refused_by_the_command(
    words: list[str], unknown: dict[str, str], tmp_path: Path
) -> None:
    """With the releases that are known, and nothing is written."""
    done = _run(words, unknown)
    assert done.returncode == 1
    known = ", ".join(KNOWN)
    assert f"numba 0.99.0: expected a release that is known to work: {known};" in done.stderr
    assert f"install numba=={KNOWN[-1]}, or use force=True (--force)" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "made.so").exists()


def test_force_uses_an_unknown_release(
    words: list[str], unknown: dict[str, str], tmp_path: Path
) -> None:
    """The process of the script gets it, too."""
    done = _run([*words, "--force"], unknown)
    assert done.returncode == 0, done.stderr
    assert runtime.load(tmp_path / "made.so")["next"](1) == 2
