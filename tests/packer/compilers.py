"""Sources to compile, and programs in place of a compiler."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from packer.toolchain.compilation import Compilation, compile_sources
from packer.toolchain.compiler import compilers

GCC = shutil.which("gcc") or "gcc"


def write(path: Path, text: str) -> Path:
    """Make a text file."""
    path.write_text(text)
    return path


def program(path: Path, text: str) -> str:
    """Write a shell script that plays a compiler."""
    write(path, "#!/bin/sh\n" + text).chmod(0o755)
    return str(path)


def compile_source(source, output, *, language, cwd, cc=None, options=(), include=()) -> Path:
    """Compile one source."""
    job = Compilation(source, output, language, tuple(options), tuple(include))
    (made,) = compile_sources([job], cwd=cwd, find=compilers(cc))
    return made


def compile_c(source: Path, **options) -> Path:
    """Compile a C source in a separate folder."""
    cwd = source.parent / "private"
    cwd.mkdir(exist_ok=True)
    return compile_source(source, cwd / "made.o", language="c", cwd=cwd, **options)


def output_of(*command: str | Path) -> str:
    """Return the output of an outside tool."""
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
