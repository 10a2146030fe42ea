"""The input files of an export: regular files that do not change until its end."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from runtime.error import ExportError

from ..files.progress import Progress, silent
from ..files.text import path_error

_State = tuple[int, int, int, int]


class Inputs:
    """The input files of one export, each with its state when it was added.

    `notes` says what a reader of these files left out, with the remedy. `progress` gets the steps
    of an import.
    """

    def __init__(self, progress: Progress = silent) -> None:
        self.progress = progress
        self.notes: list[str] = []
        self._states: dict[Path, _State] = {}

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files, in the order of their addition."""
        return tuple(self._states)

    def add(self, path: str | os.PathLike[str]) -> Path:
        """Add a regular, readable file before it is read; it is not opened: a pipe would block."""
        found = Path(path)
        state = check_regular_file(path)
        if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
            raise path_error(path, "cannot be read")
        self._states.setdefault(found, _state(state))
        return found

    def check_unchanged(self) -> None:
        """Raise an ExportError if a file was changed, replaced or removed since its addition."""
        for path, before in self._states.items():
            if _state(check_regular_file(path)) != before:
                raise path_error(path, "was changed while it was exported; export again")


def check_regular_file(path: str | os.PathLike[str]) -> os.stat_result:
    """Return the stat result of a regular file; any other file is an ExportError."""
    try:
        found = os.stat(path)
    except ValueError as error:  # a NUL, or a character that the file system cannot encode
        text = f"{os.fspath(path)!r}: no file can have this name"
        raise ExportError(text, path=os.fspath(path)) from error
    except OSError as error:
        raise path_error(path, f"cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(found.st_mode):
        what = "folder" if stat.S_ISDIR(found.st_mode) else "device, pipe or socket"
        raise path_error(path, f"is a {what}, expected a regular file")
    return found


def read_bytes(path: Path) -> bytes:
    """Read a file that was added; an error is an ExportError."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise path_error(path, f"cannot be read: {error.strerror}") from error


def read_text(path: Path, expected: str) -> str:
    """Read a file as UTF-8, as `read_bytes` does."""
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        text = f"byte {error.start:#x}: not UTF-8, expected {expected}"
        raise path_error(path, text) from error


def _state(found: os.stat_result) -> _State:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
