"""The parts of the core without Python.h under ThreadSanitizer, driven by threads.c.

Python is not instrumented: its locks would be unknown, and every report false.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from core import compile_c, pure_sources
from row import Row

HERE = Path(__file__).parent
FLAG = "-fsanitize=thread"
ROUNDS = 1000
TIMEOUT = 300  # a damaged list of libraries is a loop without end


def run_threads(folder: Path) -> Row:
    """Compile the driver and its libraries, and run it."""
    versions = [_library(folder, version) for version in ("one", "two", "three")]
    changing = folder / "changing" / "lib.so"
    changing.parent.mkdir()
    shutil.copy(versions[0], changing)
    # in_call.h has a fence for systems without membarrier, which is not run here.
    options = (FLAG, "-Wno-tsan")
    driver = compile_c([*pure_sources(), HERE / "threads.c"], folder / "threads", *options)
    command = [driver, str(ROUNDS), changing, *versions]
    environment = {**os.environ, "TSAN_OPTIONS": "exitcode=66"}
    name = "tsan: open, call, close, replace"
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return Row(name, False, f"not over in {TIMEOUT} s")
    races = done.stderr.count("WARNING: ThreadSanitizer")
    detail = f"{done.stdout.strip()}, {races} races"
    return Row(name, done.returncode == 0, detail, done.stderr)


def _library(folder: Path, version: str) -> Path:
    output = folder / f"{version}.so"
    return compile_c(
        [HERE / "called.c"], output, "-shared", "-fPIC", FLAG, f'-DVERSION="{version}"'
    )
