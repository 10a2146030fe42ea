"""Calls of Numba functions that allocate, return and raise: memory stays flat over a million.

numba_calls.py [CALLS]: prints the growth after a tenth of the calls, then after all of them. The
library is exported by .venv-numba, which has Numba; it is called here.
"""

from __future__ import annotations

import array
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from load_rounds import Left, left

import runtime

ROOT = Path(__file__).parents[2]
NUMBA = ROOT / ".venv-numba" / "bin" / "python"
EXAMPLE = ROOT / "importers" / "numba" / "tests" / "examples" / "raising.py"
EXPORT = """
import sys, packer
packer.export_library(packer.from_numba(sys.argv[1]), sys.argv[2])
"""
CALLS = 1_000_000
ONES = array.array("d", [1.0] * 8)
ZEROS = array.array("d", [0.0] * 8)
HEAP = 64 << 10  # bytes: malloc's own blocks move with its threads

# The arguments of a call that raises, and of one that returns.
ARGUMENTS: dict[str, tuple[tuple[Any, ...], tuple[Any, ...]]] = {
    **dict.fromkeys(
        (
            *("an_array", "nested", "containers", "inside_a_list", "an_object", "too_large"),
            *("several", "caught_here", "caught_and_raised", "loops", "lists_of_loops", "written"),
        ),
        ((1,), (0,)),
    ),
    "of_an_argument": ((ONES, 1), (ONES, 0)),
    "texts": (("some téxt", 1), ("some téxt", 0)),
    "the_text_itself": (("some téxt", 1), ("some téxt", 0)),
    "caught": ((1, 3), (0, 3)),
    "elements": ((ONES,), (ZEROS,)),
    "rows": ((ONES,), (ZEROS,)),
}


def main(calls: int = CALLS) -> int:
    """Call every function in turn."""
    with tempfile.TemporaryDirectory(prefix="numba-calls-") as folder:
        path = Path(folder) / "raising.so"
        subprocess.run([NUMBA, "-P", "-W", "ignore", "-c", EXPORT, EXAMPLE, path], check=True)
        library = runtime.load(path)
        functions = [(library[name], *given) for name, given in ARGUMENTS.items()]
        raised = call_all(functions, max(1, calls // 50))
        before, status = left(), 0
        for share in (calls // 10, calls - calls // 10):
            raised = call_all(functions, share)
            grown = growth(before, left())
            status |= int(grown.heap > HEAP or grown.descriptors > 0 or raised == 0)
            print(f"{share} calls, {raised} raised: {grown}", flush=True)
    return status


def call_all(functions: list[tuple[Callable[..., Any], Any, Any]], calls: int) -> int:
    """Make calls, half of them with arguments for which the function raises; return how many."""
    raised = 0
    for _ in range(max(1, calls // (2 * len(functions)))):
        for function, raising, returning in functions:
            function(*returning)
            try:
                function(*raising)
            except Exception:
                raised += 1
    return raised


def growth(before: Left, after: Left) -> Left:
    """Subtract."""
    return Left(*(b - a for a, b in zip(before, after, strict=True)))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
