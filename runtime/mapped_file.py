"""A regular file as a view of its mapped pages."""

from __future__ import annotations

import os
from errno import EINVAL
from stat import S_ISREG

from .error import LibraryLoadError


def map_file(path: str | os.PathLike[str]) -> tuple[memoryview, os.stat_result]:
    """Map a regular file; return its bytes and its state. Raises OSError or ValueError."""
    from mmap import ACCESS_READ, mmap

    # O_NONBLOCK: opening a pipe would wait for its writer; it is refused below.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        state = os.fstat(descriptor)
        if not S_ISREG(state.st_mode):
            raise OSError(EINVAL, "not a regular file")
        size = state.st_size
        return memoryview(mmap(descriptor, size, access=ACCESS_READ) if size else b""), state
    finally:
        os.close(descriptor)


def read_file(path: str) -> memoryview:
    """Map a regular file; raise LibraryLoadError if that fails."""
    try:
        return map_file(path)[0]
    except (OSError, ValueError) as error:
        text = f"{path}: {reason_of(error)}"
        raise LibraryLoadError(text, path=path, reason="io") from error


def reason_of(error: OSError | ValueError) -> str:
    """The part of an error of `map_file` that a message shows."""
    return str(getattr(error, "strerror", None) or error)
