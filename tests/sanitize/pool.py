"""The thread pool, workspaces and Numba's loops under ThreadSanitizer and AddressSanitizer.

The drivers are pool.c and numba_loops.c.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from core import ROOT, compile_c, pure_sources
from row import Row

HERE = Path(__file__).parent
PROBE = ROOT / "tests" / "support" / "c" / "launch_probe.c"
SUPPORT = ROOT / "importers" / "numba" / "dso_packer_numba" / "support"
LOOPS = ("array.c", "calls.c", "pending.c", "nrt.c", "parallel.c", "random.c", "schedule.c")
TIMEOUT = 300  # a wait without an end is found, too
TSAN = ("tsan: pool, workspaces", ("-fsanitize=thread", "-Wno-tsan"), ("25",))
# A child of a process with threads is beyond ThreadSanitizer.
ASAN = ("asan, ubsan: pool, workspaces, forks", ("-fsanitize=address,undefined",), ("25", "fork"))


def run_pool(folder: Path) -> list[Row]:
    """Compile the driver twice, and run it."""
    sources = [PROBE, HERE / "pool.c"]
    return [_run(folder / row[0][:4], sources, *row) for row in (TSAN, ASAN)]


def run_loops(folder: Path) -> list[Row]:
    """Compile the driver of Numba's loops twice, and run it."""
    sources = [HERE / "numba_loops.c", *(SUPPORT / name for name in LOOPS)]
    rows = (
        ("tsan: loops of Numba", TSAN[1], ("25",)),
        ("asan, ubsan: loops of Numba", ASAN[1], ("10",)),
    )
    return [_run(folder / row[0][:4], sources, *row) for row in rows]


def _run(
    output: Path, sources: list[Path], name: str, flags: tuple[str, ...], args: tuple[str, ...]
) -> Row:
    driver = compile_c([*pure_sources(), *sources], output, f"-I{SUPPORT}", *flags)
    environment = {**os.environ, "TSAN_OPTIONS": "exitcode=66", "UBSAN_OPTIONS": "halt_on_error=1"}
    try:
        done = subprocess.run(
            [driver, *args], env=environment, capture_output=True, text=True, check=False,
            timeout=TIMEOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Row(name, False, f"not over in {TIMEOUT} s")
    return Row(name, done.returncode == 0, done.stdout.strip(), done.stderr)
