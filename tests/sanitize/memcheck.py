"""valgrind's memcheck over one script that loads, calls, fails and unloads."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from core import ROOT, build_packages, compile_c
from row import Row

HERE = Path(__file__).parent
NAME = "valgrind: load, call, fail, unload"
# Leaks are LeakSanitizer's part; --fullpath-after= has whole paths in the stacks.
COMMAND = ("valgrind", "--leak-check=no", "--num-callers=40", "--fullpath-after=")


def run_script(folder: Path) -> Row:
    """Run every_call.py under memcheck, where there is one."""
    if shutil.which("valgrind") is None:
        return Row(NAME, None, "no valgrind here")
    environment = build_packages(folder)
    sources = ROOT / "tests" / "support" / "c"
    libraries = [
        compile_c([sources / f"{name}.c"], folder / f"{name}.so", "-shared", "-fPIC")
        for name in ("probe", "declared")
    ]
    log = folder / "memcheck.log"
    command = [*COMMAND, f"--log-file={log}", sys.executable, HERE / "every_call.py", *libraries]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    reports = _reports(log.read_text())
    ours = [report for report in reports if _is_ours(report)]
    detail = f"{done.stdout.strip()}, {len(ours)} reports of the core of {len(reports)}"
    return Row(NAME, done.returncode == 0 and not ours, detail, "\n".join([done.stderr, *ours]))


def _reports(log: str) -> list[str]:
    """A report begins after an empty line, and its stack with ``at``."""
    lines = [line.partition("== ")[2] for line in log.splitlines()]
    return [report for report in "\n".join(lines).split("\n\n") if "\n   at 0x" in report]


def _is_ours(report: str) -> bool:
    """CPython branches on unset bits (int of a text), and its zeros carry them further.

    Frames outside one of Python's evaluation belong to Python code that the core calls.
    """
    innermost = report.partition("_PyEval_EvalFrameDefault")[0]
    return "/runtime/native/" in innermost or "nvalid" in report.split("\n   at 0x")[0]
