"""Files of keys: made with a mode, never replaced, and read by their owner alone."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .output import reporting
from .text import path_error, shown_path


def refuse_existing(*paths: Path) -> None:
    """Raise ExportError if one of the files exists."""
    for path in paths:
        if os.path.lexists(path):
            raise path_error(path, "exists, and a key is never replaced; choose another name")


def write_new(path: Path, data: bytes, mode: int) -> None:
    """Write a new file; leave none if that fails. Raises ExportError."""
    with reporting(path):
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, mode)
        try:
            with open(descriptor, "wb") as file:
                file.write(data)
        except BaseException:
            path.unlink(missing_ok=True)
            raise


def readable_by_others(source: str) -> str:
    """Return a warning if others may read the file of a key; "" if not, or if there is none."""
    try:
        mode = os.stat(source).st_mode
    except (OSError, ValueError):
        return ""  # reading it raises the error
    if not mode & (stat.S_IRWXG | stat.S_IRWXO):
        return ""
    text = f"{shown_path(source)}: other users may read this key (mode {stat.S_IMODE(mode):04o})"
    return f"{text}; chmod 600 {shown_path(source)}"
