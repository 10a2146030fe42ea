"""Verified loads of libdso beside a thread that rewrites, cuts and replaces the file.

verified_loads.py [ROUNDS]: until so many were loaded, and so many refused; none ran other bytes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # at the end: runtime is the installed one

import packer
from tests.support.libdso import compile_program
from tests.support.needed_library import Pair
from tests.support.paths import C_SOURCES


def main(rounds: str) -> int:
    """Run the program; it prints the counts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pair = Pair(folder)
        module = packer.CSourceModule("int quarter(int x) { return x; }", functions="auto")
        bad = packer.export_library(module, folder / "bad.so")
        program = compile_program((C_SOURCES / "dso_verify.c").read_text(), folder / "verify")
        names = {**os.environ, "COPIED_FROM": str(bad), "ROUNDS": rounds}
        command = [program, "writer", pair.model, *pair.trusted]
        done = subprocess.run(command, env=names, capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr, end="")
    return int(done.returncode != 0 or not done.stdout.endswith(" 0 wrong\n"))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:] or ["10000"]))
