"""Outcomes: say what went wrong with a compiler or linker."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from runtime.error import ToolchainError

from .process import Completed

# The first line with one of these says what is wrong, unless it only says that the linker did.
_TELLING = re.compile(
    r"\berror\s*:|\bfatal\s*:|undefined (?:reference|symbol)|multiple definition|cannot find"
    r"|recompile with|not recognized"
)
_EPILOGUE = re.compile(r"ld returned \d|linker command failed")


def check(completed: Completed, doing: str, output: Path) -> None:
    """Go on only if a program exited with 0 and made a file.

    Raises
    ------
    ToolchainError
        It did not; the message says what it was `doing`, and the line that tells why.
    """
    message = f"{os.path.basename(completed.command[0])} {ending(completed)} {doing}"
    if completed.returncode != 0:
        message += f": {_summary(completed.output)}"
    elif not output.is_file():
        message += ", but made no output"
    elif output.stat().st_size == 0:
        message += ", but its output is empty"
    else:
        return
    raise ToolchainError(
        message,
        command=completed.command,
        returncode=completed.returncode,
        stderr=completed.output,
    )


def ending(completed: Completed) -> str:
    """Return how a program ended, as a message says it."""
    code = completed.returncode
    return f"exited with {code}" if code >= 0 else f"ended by {_signal_name(-code)}"


def _signal_name(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:  # a real-time signal
        name = f"signal {number}"
    return f"{name} (out of memory?)" if number == signal.SIGKILL else name


def _summary(output: str) -> str:
    """The line that says what is wrong, or else the last twenty."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in lines:
        if _TELLING.search(line) and not _EPILOGUE.search(line):
            return line
    return "\n".join(lines[-20:]) or "it printed nothing"
