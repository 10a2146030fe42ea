"""The command line in processes, and sources for it."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

COMMAND = (sys.executable, "-m", "packer")
TWO = "int64_t(int64_t a, int64_t b)"
ADD = f"add={TWO}"
CODE = "#include <stdint.h>\nint64_t add(int64_t a, int64_t b) { return a + b; }\n"
Packer = Callable[..., "subprocess.CompletedProcess[str]"]


def done(run: subprocess.CompletedProcess[str]) -> str:
    """Return the output of a successful run; stderr is empty."""
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout


def refused(run: subprocess.CompletedProcess[str], code: int = 1) -> str:
    """Return the message of a refused run; stderr has no traceback."""
    assert code == run.returncode
    assert "Traceback" not in run.stderr
    assert "internal error" not in run.stderr
    if code == 1:
        assert run.stderr.splitlines()[-1].startswith("packer: ")
    return run.stderr


def digest(path: Path) -> str:
    """Of a file's bytes."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def with_compiler(path: str | Path) -> dict[str, str]:
    """Return an environment with this compiler."""
    return os.environ | {"CC": str(path), "CXX": str(path)}


def script_compiler(folder: Path, line: str) -> dict[str, str]:
    """An environment whose compiler runs a line of shell first."""
    script = folder / "compiler"
    script.write_text(f'#!/bin/sh\n{line}\nexec cc "$@"\n')
    script.chmod(0o755)
    return with_compiler(script)
