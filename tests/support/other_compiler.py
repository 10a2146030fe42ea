"""Objects that look like objects of other compilers for TVM FFI, compiled with its real headers."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

from . import needs
from .paths import C_SOURCES


def compiled(output: Path, *options: str, source: str = "other_compiler.c") -> Path:
    """Compile a file to an object, or with ``-shared`` to a library."""
    needs.importable("tvm_ffi", "test")
    include = Path(str(importlib.util.find_spec("tvm_ffi").origin)).with_name("include")  # type: ignore[union-attr]
    kind = () if "-shared" in options else ("-c",)
    command = ["cc", "-Wall", "-fPIC", *kind, f"-I{include}", *options, "-o", output]
    subprocess.run([*command, C_SOURCES / source], check=True)
    return output


def run_time(folder: Path, name: str) -> Path:
    """Make an archive of what the objects with ``-DCUTE`` need."""
    folder.mkdir(parents=True)
    made = compiled(folder / "run_time.o", source="other_compiler_run_time.c")
    subprocess.run(["ar", "rcs", folder / name, made], check=True)
    made.unlink()
    return folder / name
