"""Copy chunks into a file at an offset: ranges of files inside the kernel, the rest by pwrite.

copy_file_range(2) leaves it to the file system, which shares the blocks (reflink) where it can
and the range is aligned to them. Where there is no such way sendfile(2) moves the pages, else
they pass through memory, a piece at a time. Holes of a sparse source stay holes.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from runtime.error import ExportError
from runtime.stream import FileRange

from .chunks import nbytes_of

if TYPE_CHECKING:
    from runtime.stream import Chunk

    Report = Callable[[int, int], None]

# What is copied between two reports, and between two chances for a signal's handler to run.
PIECE_NBYTES = 16 << 20
_BUFFER_NBYTES = 1 << 20

# Not for this kernel, these file systems or these files; EPERM is a seccomp filter. After EINTR
# the next way does the piece: Python repeats that one itself (PEP 475).
_CANNOT = {errno.ENOSYS, errno.EXDEV, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, errno.EINTR}
# What only writing runs into: the output is to blame, and who made it says so.
_CANNOT_WRITE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_chunks(target: int, offset: int, chunks: Sequence[Chunk], report: Report) -> None:
    """Write chunks one after another.

    Parameters
    ----------
    target : int
        A descriptor of a regular file; zeros already, where sources have holes.
    offset : int
        Where the first chunk goes, in bytes.
    chunks : sequence of chunks
        Nothing of a file range is held in memory.
    report : callable
        Called with (bytes done, bytes in all), now and then.

    Raises
    ------
    ExportError
        A source cannot be read, or changed while it was.
    OSError
        The target cannot be written.
    """
    start, total = 0, nbytes_of(chunks)
    for chunk in chunks:
        for done in _write_chunk(target, offset + start, chunk):
            report(start + done, total)
        start += nbytes_of([chunk])


def _write_chunk(target: int, offset: int, chunk: Chunk) -> Iterator[int]:
    """Write one chunk; tell after each piece how much of it is there."""
    if isinstance(chunk, FileRange):
        return _copy_range(target, offset, chunk)
    return _write_view(target, offset, chunk)


def _write_view(target: int, offset: int, chunk: bytes | memoryview) -> Iterator[int]:
    view, done = memoryview(chunk), 0
    while done < len(view):
        done += os.pwrite(target, view[done : done + PIECE_NBYTES], offset + done)
        yield done


def _copy_range(target: int, offset: int, chunk: FileRange) -> Iterator[int]:
    with _unchanging(chunk) as source:
        for start, end in _data_parts(source, chunk.offset, chunk.offset + chunk.nbytes):
            at = start
            while at < end:
                nbytes = min(PIECE_NBYTES, end - at)
                moved = _move(source, at, target, offset + at - chunk.offset, nbytes)
                if moved == 0:
                    raise _changed(chunk)
                at += moved
                yield at - chunk.offset


@contextlib.contextmanager
def _unchanging(chunk: FileRange) -> Iterator[int]:
    """Open a range's file; at the end it must be what it was."""
    try:
        source = os.open(chunk.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            before = os.fstat(source)
            if before.st_size < chunk.offset + chunk.nbytes:
                raise _changed(chunk)
            yield source
            after = os.fstat(source)
        finally:
            os.close(source)
    except OSError as error:
        if isinstance(error, ExportError) or error.errno in _CANNOT_WRITE:
            raise
        text = f"{chunk.path}: cannot be copied: {error.strerror}"
        raise ExportError(text, path=chunk.path) from error
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise _changed(chunk)


def _changed(chunk: FileRange) -> ExportError:
    what = f"expected {chunk.nbytes} bytes at {chunk.offset:#x}"
    text = f"{chunk.path}: {what}; it changed while it was read"
    return ExportError(text, path=chunk.path)


def _data_parts(source: int, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a range that are no holes, as (start, end): lseek(2), SEEK_DATA."""
    while start < end:
        try:
            start = os.lseek(source, start, os.SEEK_DATA)
            hole = os.lseek(source, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a hole to the end
                return
            hole = end  # no holes on this file system
        if start < end:
            yield start, min(hole, end)
        start = hole


def _move(source: int, at: int, target: int, to: int, nbytes: int) -> int:
    """Copy up to so many bytes in the best way there is, and tell how many; 0 at the end."""
    for way in _WAYS:
        try:
            if moved := way(source, at, target, to, nbytes):
                return moved
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
    return 0


def _in_file_system(source: int, at: int, target: int, to: int, nbytes: int) -> int:
    return os.copy_file_range(source, target, nbytes, at, to)


def _in_page_cache(source: int, at: int, target: int, to: int, nbytes: int) -> int:
    os.lseek(target, to, os.SEEK_SET)
    return os.sendfile(target, source, at, nbytes)


def _through_memory(source: int, at: int, target: int, to: int, nbytes: int) -> int:
    return os.pwrite(target, os.pread(source, min(nbytes, _BUFFER_NBYTES), at), to)


_WAYS = (_in_file_system, _in_page_cache, _through_memory)
