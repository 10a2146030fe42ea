"""A regular file as a view of its mapped pages."""

from __future__ import annotations

import os
from errno import EINVAL
from stat import S_ISREG

from ..error import LibraryLoadError


def map_file(path: str | os.PathLike[str]) -> tuple[memoryview, os.stat_result]:
    """Map a regular file; return its bytes and its state. Raises OSError or ValueError."""
    from mmap import ACCESS_READ, mmap

    descriptor, state = _open(path)
    try:
        size = state.st_size
        return memoryview(mmap(descriptor, size, access=ACCESS_READ) if size else b""), state
    finally:
        os.close(descriptor)


def read_small(path: str, most: int) -> memoryview:
    """Read a regular file that another process may cut, since a map would then end this one.

    One of more than `most` bytes is mapped, since only its size will be read. Raises OSError or
    ValueError.
    """
    descriptor, state = _open(path)
    try:
        if state.st_size > most:
            return map_file(path)[0]
        data = b""
        while len(data) <= most and (part := os.read(descriptor, most)):  # it may grow
            data += part
        return memoryview(data)
    finally:
        os.close(descriptor)


def _open(path: str | os.PathLike[str]) -> tuple[int, os.stat_result]:
    # O_NONBLOCK: opening a pipe would wait for its writer; it is refused below.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    state = os.fstat(descriptor)
    if S_ISREG(state.st_mode):
        return descriptor, state
    os.close(descriptor)
    raise OSError(EINVAL, "not a regular file")


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
