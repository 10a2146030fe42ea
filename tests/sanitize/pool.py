"""The thread pool and workspaces under ThreadSanitizer and AddressSanitizer, driven by pool.c."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from core import ROOT, compile_c, pure_sources
from row import Row

HERE = Path(__file__).parent
PROBE = ROOT / "tests" / "support" / "c" / "pool_probe.c"
TIMEOUT = 300  # a wait without an end is found, too
TSAN = ("tsan: pool, workspaces", ("-fsanitize=thread", "-Wno-tsan"), ("25",))
# A child of a process with threads is beyond ThreadSanitizer.
ASAN = ("asan, ubsan: pool, workspaces, forks", ("-fsanitize=address,undefined",), ("25", "fork"))


def run_pool(folder: Path) -> list[Row]:
    """Compile the driver twice, and run it."""
    return [_run(folder / name[:4], name, flags, args) for name, flags, args in (TSAN, ASAN)]


def _run(output: Path, name: str, flags: tuple[str, ...], args: tuple[str, ...]) -> Row:
    driver = compile_c([*pure_sources(), PROBE, HERE / "pool.c"], output, *flags)
    environment = {**os.environ, "TSAN_OPTIONS": "exitcode=66", "UBSAN_OPTIONS": "halt_on_error=1"}
    try:
        done = subprocess.run(
            [driver, *args], env=environment, capture_output=True, text=True, check=False,
            timeout=TIMEOUT,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Row(name, False, f"not over in {TIMEOUT} s")
    return Row(name, done.returncode == 0, done.stdout.strip(), done.stderr)
