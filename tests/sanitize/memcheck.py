"""valgrind's memcheck over one script that loads, calls, fails and unloads."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from core import build_packages
from row import Row

HERE = Path(__file__).parent
NAME = "valgrind: load, call, fail, unload"
# Leaks are LeakSanitizer's part. CPython itself is clean once PYTHONMALLOC=malloc is set.
COMMAND = ("valgrind", "--quiet", "--error-exitcode=9", "--leak-check=no", "--num-callers=30")


def run_script(folder: Path) -> Row:
    """Run every_call.py under memcheck, where there is one."""
    if shutil.which("valgrind") is None:
        return Row(NAME, None, "no valgrind here")
    environment = build_packages(folder)
    command = [*COMMAND, f"--suppressions={HERE / 'cpython.supp'}", sys.executable, str(HERE / "every_call.py"), str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    passed = done.returncode == 0 and "==" not in done.stderr
    return Row(NAME, passed, done.stdout.strip(), done.stderr)
