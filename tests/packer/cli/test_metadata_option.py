"""packer export --metadata, and what packer inspect shows of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import runtime

PROJECT = """
[library]
version = "1.0"
license = "MIT"
metadata = { trained = { epochs = 3 } }
[module.host]
kind = "c"
sources = ["a.c"]
functions = "auto"
"""


def packer(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder with one source."""
    (folder / "a.c").write_text("int f(void) { return 1; }")
    command = [sys.executable, "-P", "-m", "packer", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_option_replaces_single_values_of_the_project(tmp_path) -> None:
    """CI sets the version; the rest is that of packer.toml."""
    (tmp_path / "packer.toml").write_text(PROJECT)
    options = ["--metadata", "version=2.0", "--metadata", "built=a=b"]
    assert packer(tmp_path, "export", "a.so", *options).returncode == 0
    expected = {
        "version": "2.0",
        "license": "MIT",
        "trained": {"epochs": 3},
        "built": "a=b",
    }
    assert runtime.load(tmp_path / "a.so").metadata == expected
    assert json.loads(packer(tmp_path, "inspect", "a.so", "--json").stdout)["metadata"] == expected
    assert "\n  trained: {" in packer(tmp_path, "inspect", "a.so").stdout


def test_sources_alone_can_have_it(tmp_path) -> None:
    """Without packer.toml; an empty text is text."""
    made = packer(tmp_path, "export", "a.so", "a.c", "--metadata", "note=")
    assert made.returncode == 0
    assert runtime.load(tmp_path / "a.so").metadata == {"note": ""}


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["version"], 2, "argument --metadata: expected KEY=TEXT, found 'version'"),
        (["=1"], 2, "argument --metadata: expected KEY=TEXT, found '=1'"),
        (["a=1", "a=2"], 2, "argument --metadata: 'a' is given twice"),
        (["version="], 1, "packer: metadata: version: expected text, found ''"),
    ],
)
def test_mistakes_are_named(tmp_path, words, code, text) -> None:
    """Usage errors end with 2, a value that cannot be stored with 1; nothing is written."""
    options = [part for word in words for part in ("--metadata", word)]
    made = packer(tmp_path, "export", "a.so", "a.c", *options)
    assert made.returncode == code
    assert text in made.stderr
    assert "Traceback" not in made.stderr
    assert not (tmp_path / "a.so").exists()
