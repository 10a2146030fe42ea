"""hash.c: the secret of the hashes of text."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

from .both import compile_support


def test_hashes_of_text_are_those_of_a_python_without_random_hashes(tmp_path: Path) -> None:
    """Numba itself reads these numbers from such a Python."""
    library = compile_support(tmp_path, "hash.c")
    code = (
        "from numba.cpython.hashing import _hashsecret as h\nprint(*(h[k].value.value for k in h))"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    names = ("djbx33a_suffix", "siphash_k0", "siphash_k1")
    values = [ctypes.c_uint64.in_dll(library, f"_numba_hashsecret_{name}").value for name in names]
    assert [int(word) for word in done.stdout.split()] == values
