"""Outcomes: report the failure of a compiler or linker."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from runtime.error import ToolchainError

from .build import current_build
from .process import Completed

# The first line with one of these names the error, unless it only reports that the linker failed.
_TELLING = re.compile(
    r"\berror\s*:|\bfatal\s*:|undefined (?:reference|symbol)|multiple definition|cannot find"
    r"|recompile with|not recognized"
)
_EPILOGUE = re.compile(r"ld returned \d|linker command failed")


def check(completed: Completed, doing: str, output: Path) -> None:
    """Refuse the outcome of a program, unless it exited with 0 and wrote a file; show its warnings.

    Raises ToolchainError if it failed; the message contains `doing` and the line that names the
    error.
    """
    build = current_build()
    completed = completed._replace(output=build.named(completed.output))
    message = f"{os.path.basename(completed.command[0])} {ending(completed)} {doing}"
    if completed.returncode != 0:
        message += f": {summary(completed.output)}"
    elif not output.is_file():
        message += ", but wrote no output"
    elif output.stat().st_size == 0:
        message += ", but its output is empty"
    else:
        warnings = completed.output.strip("\n")
        if warnings and warnings not in build.shown:
            build.shown.add(warnings)
            build.show(warnings)
        return
    raise failure(completed, message)


def failure(completed: Completed, message: str) -> ToolchainError:
    """Make the error that reports a program's failure."""
    command, code, output = completed
    return ToolchainError(message, command=command, returncode=code, stderr=output)


def ending(completed: Completed) -> str:
    """Return how a program ended: its exit status, or the signal."""
    code = completed.returncode
    return f"exited with {code}" if code >= 0 else f"ended by {_signal_name(-code)}"


def _signal_name(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:  # a real-time signal
        name = f"signal {number}"
    return f"{name} (out of memory?)" if number == signal.SIGKILL else name


def summary(output: str) -> str:
    """Return the line that names the error, or else the last twenty lines."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in lines:
        if _TELLING.search(line) and not _EPILOGUE.search(line):
            return line
    return "\n".join(lines[-20:]) or "it printed nothing"
