"""Export: a small source to a library on the disk; whole processes. Large ones: weights.py."""

from __future__ import annotations

import sys
from pathlib import Path

from library import DECLARATIONS, KERNELS
from measure import Case, Command, Launcher, interleave
from table import Table

ROUNDS = 9


def tables(folder: Path, launch: Launcher) -> list[Table]:
    """Measure the export of a small C file."""
    gcc: Command = ["gcc", "-shared", "-O2", "-fPIC", "-o", folder / "gcc.so", KERNELS]
    synced: Command = ["sh", "-c", '"$@" && sync "$6"', "sh", *gcc]
    functions = [f"--function={name}={text}" for name, text in DECLARATIONS.items()]
    packer: Command = [
        sys.executable,
        "-I",
        "-m",
        "packer",
        "export",
        folder / "packer.so",
        KERNELS,
        *functions,
    ]
    cases = [
        Case("gcc -shared -O2 -fPIC (reference)", lambda: launch(gcc).sample()),
        Case("the same, and sync", lambda: launch(synced).sample()),
        Case("packer export", lambda: launch(packer).sample()),
    ]
    notes = ("aim: at most 100 ms over gcc",)
    return [Table("export: a small C file", interleave(cases, ROUNDS), "ms", "peak", notes)]
