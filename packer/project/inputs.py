"""The files that an export reads: regular ones, and the same at its end as at its start."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from runtime.error import ExportError

from ..files.text import shown_path

_State = tuple[int, int, int, int]


class Inputs:
    """The input files of one export, each with the state in which it was first seen."""

    def __init__(self) -> None:
        self._states: dict[Path, _State] = {}

    @property
    def paths(self) -> tuple[Path, ...]:
        """All files, in the order in which they were added."""
        return tuple(self._states)

    def add(self, path: str | os.PathLike[str]) -> Path:
        """Take a file among the inputs, before it is read.

        Raises
        ------
        ExportError
            It is no regular file, or cannot be read; it is never opened to find out, since a
            pipe would block.
        """
        found = Path(path)
        state = check_regular_file(path)
        if not os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids):
            raise ExportError(f"{shown_path(path)}: cannot be read", path=os.fspath(path))
        self._states.setdefault(found, _state(state))
        return found

    def check_unchanged(self) -> None:
        """Go on only if every file still is what it was when it was added.

        Raises
        ------
        ExportError
            One was changed, replaced or removed meanwhile.
        """
        for path, before in self._states.items():
            if _state(check_regular_file(path)) != before:
                text = f"{shown_path(path)}: was changed while it was exported; export again"
                raise ExportError(text, path=str(path))


def check_regular_file(path: str | os.PathLike[str]) -> os.stat_result:
    """Return what the system knows of a file that can be read to its end.

    Raises
    ------
    ExportError
        There is none, or it is a folder, pipe, socket or device.
    """
    name = shown_path(path)
    try:
        found = os.stat(path)
    except ValueError as error:  # a NUL, or what the file system's encoding lacks
        text = f"{os.fspath(path)!r}: no file can have this name"
        raise ExportError(text, path=os.fspath(path)) from error
    except OSError as error:
        text = f"{name}: cannot be read: {error.strerror}"
        raise ExportError(text, path=os.fspath(path)) from error
    if not stat.S_ISREG(found.st_mode):
        kind = "folder" if stat.S_ISDIR(found.st_mode) else "device, pipe or socket"
        text = f"{name}: is a {kind}, expected a regular file"
        raise ExportError(text, path=os.fspath(path))
    return found


def _state(found: os.stat_result) -> _State:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
