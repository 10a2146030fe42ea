"""Operators under the address and undefined-behaviour sanitizers: no read outside of any array."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ..support import operators

# Arrays of exact sizes, each a separate allocation: NumPy keeps no memory of large arrays.
PROGRAM = """
import ctypes, sys
sys.path.append(sys.argv[2])
from tests.support.operator_samples import run_samples
run_samples(ctypes.CDLL(sys.argv[1]))
print("done")
"""


def test_operators_read_and_write_inside_their_arrays(tmp_path) -> None:
    """At the last level of this machine; its tiles are the largest.

    Bytes are multiplied as the level does it, and not as the processor could.
    """
    path = operators.build(
        tmp_path, "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all",
        "-DDSO_OP_COMPILED_ONLY", *operators.newest_level(),
    )  # fmt: skip
    preloaded = [
        subprocess.run(
            ["cc", f"-print-file-name=lib{name}.so"], capture_output=True, text=True, check=True
        ).stdout.strip()
        for name in ("asan", "ubsan")
    ]
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(preloaded),
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter's
        "PYTHONMALLOC": "malloc",
    }
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, path, root],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")
