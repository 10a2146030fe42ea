"""`packer export --torch` and kind torch, as a user calls them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

NET = """
import torch

def make():
    return torch.nn.Linear(3, 2), [torch.zeros(1, 3)]

def wrong():
    return 1

def fails():
    raise RuntimeError("no weights here")
"""


def packer(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in a folder that has net.py."""
    (folder / "net.py").write_text(NET)
    command = [sys.executable, "-m", "packer", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def notes(run: subprocess.CompletedProcess[str]) -> str:
    """Return stderr without the steps, which are lines if the export takes more than 10 s."""
    return re.sub(r"^packer: [a-z ]+\n", "", run.stderr, flags=re.MULTILINE)


@pytest.mark.parametrize("target", ["net:make", "net.py:make"])
def test_a_function_gives_the_model(tmp_path: Path, target: str) -> None:
    """By the name of its module, or by its file."""
    done = packer(tmp_path, "export", "a.so", "--torch", target, "--cpu", "native")
    assert (done.returncode, notes(done)) == (0, "")
    code = """
import runtime
x = memoryview(bytes(12)).cast("f", (1, 3))
print(runtime.load("a.so")["main"](x).shape)
"""
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert shown.stdout == "(1, 2)\n"


def test_a_project_names_the_file(tmp_path: Path) -> None:
    """The file is beside packer.toml, wherever the command runs."""
    (tmp_path / "packer.toml").write_text(
        '[library]\noutput = "a.so"\n[module.net]\nkind = "torch"\nmodel = "net.py:make"\n'
    )
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (tmp_path / "net.py").write_text(NET)
    done = packer(folder, "export", "--project", "../packer.toml", "--cpu", "native")
    assert (done.returncode, notes(done)) == (0, "")
    assert (tmp_path / "a.so").exists()


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("net", "expected MODULE:FUNCTION or FILE.py:FUNCTION"),
        ("nett:make", "cannot import nett: ModuleNotFoundError"),
        ("nett.py:make", "there is no such file"),
        ("net:mak", "has no function 'mak'; near names: 'make'"),
        ("net:wrong", "found int"),
        ("net:fails", "net:fails: RuntimeError: no weights here"),
    ],
)
def test_a_wrong_function_is_refused(tmp_path: Path, target: str, text: str) -> None:
    """Without a traceback."""
    done = packer(tmp_path, "export", "a.so", "--torch", target)
    assert done.returncode == 1
    assert text in done.stderr
    assert "Traceback" not in done.stderr
