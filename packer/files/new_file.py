"""Files that are made, and never replaced: keys."""

from __future__ import annotations

import os
from pathlib import Path

from .output import reporting
from .text import path_error


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
