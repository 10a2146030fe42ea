"""Compile small C libraries for tests, with the runtime's own header on the path."""

from __future__ import annotations

import subprocess
from pathlib import Path

import runtime

INCLUDE = Path(runtime.__file__).parent / "include"


def compile_c(source: str, output: Path, *options: str) -> Path:
    """Make a shared library of C text, or with ``-c`` an object."""
    text = output.with_suffix(".c")
    text.write_text(source)
    shared = () if "-c" in options else ("-shared", "-Wl,-Bsymbolic")
    command = ["cc", "-O1", "-fPIC", *shared, f"-I{INCLUDE}", str(text), "-o", str(output)]
    subprocess.run([*command, *options], check=True)
    return output
