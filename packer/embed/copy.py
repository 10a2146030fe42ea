"""Copy chunks into a file at an offset, holding nothing of a file range in memory.

Where source and target lie alike in their pages, copy_file_range(2) does it inside the kernel, and
shares the blocks (reflink) on file systems that can. Otherwise the kernel would fill every page
in two steps: pieces that fill whole pages of the target take 2/3 of the time (one core, ext4). So
do they where the kernel has no way between two file systems. Holes of a sparse source stay holes.

The blocks of what is much are reserved before it is written: that leaves ext4 less to do for each
page than to note that it still needs one.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from runtime._core import copy_range, reserve
from runtime.error import ExportError
from runtime.stream import FileRange

from .chunks import nbytes_of

if TYPE_CHECKING:
    from runtime.stream import Chunk

    Report = Callable[[int, int], None]

# What lies between two chances for a signal's handler to run.
_STEP_NBYTES = 16 << 20
# At once through memory, as in the core's copy_range: what fits the processor's cache. Pieces end
# on multiples of their size in the target.
_MEMORY_NBYTES = 64 << 10
# From here on the blocks are reserved.
_MUCH = 1 << 20


def write_chunks(target: int, offset: int, chunks: Sequence[Chunk], report: Report) -> None:
    """Write chunks one after another.

    Parameters
    ----------
    target : int
        A descriptor of a regular file; zeros already, where sources have holes.
    offset : int
        Where the first chunk goes, in bytes.
    chunks : sequence of chunks
        In order, without gaps.
    report : callable
        Called with (bytes done, bytes in all), often.

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
    return _write_view(target, offset, memoryview(chunk))


def _write_view(target: int, offset: int, view: memoryview) -> Iterator[int]:
    done = 0
    _reserve(target, offset, len(view))
    while done < len(view):
        end = done + _up_to(offset + done, _MEMORY_NBYTES)
        done += os.pwrite(target, view[done:end], offset + done)
        yield done


def _reserve(target: int, offset: int, nbytes: int) -> None:
    if nbytes >= _MUCH:
        reserve(target, offset, nbytes)


def _up_to(offset: int, size: int) -> int:
    """The bytes from an offset to the next multiple of a size."""
    return size - offset % size


def _copy_range(target: int, offset: int, chunk: FileRange) -> Iterator[int]:
    move = offset - chunk.offset  # from a position in the source to that in the target
    with _unchanging(chunk) as source:
        for at, end in _data_parts(source, chunk.offset, chunk.offset + chunk.nbytes):
            _reserve(target, at + move, end - at)
            while at < end:
                nbytes = min(end - at, _up_to(at + move, _STEP_NBYTES))
                at += (
                    _copy_in_kernel(source, at, target, at + move, nbytes)
                    or copy_range(source, at, target, at + move, nbytes)
                    or _copy_byte(source, at, target, at + move, chunk)
                )
                yield at - chunk.offset


@contextlib.contextmanager
def _unchanging(chunk: FileRange) -> Iterator[int]:
    """Open a range's file; at the end it must be what it was."""
    with _reading(chunk):
        source = os.open(chunk.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        before = os.fstat(source)
        if before.st_size < chunk.offset + chunk.nbytes:
            raise _changed(chunk)
        yield source
        after = os.fstat(source)
    finally:
        os.close(source)
    if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
        raise _changed(chunk)


@contextlib.contextmanager
def _reading(chunk: FileRange) -> Iterator[None]:
    """Blame the source for what only reads it."""
    try:
        yield
    except OSError as error:
        text = f"{chunk.path}: cannot be copied: {error.strerror or error}"
        raise ExportError(text, path=chunk.path) from error


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
            hole = end  # this file system does not tell
        if start < end:
            yield start, min(hole, end)
        start = hole


def _copy_in_kernel(source: int, at: int, target: int, to: int, nbytes: int) -> int:
    """Copy up to so many bytes, and tell how many; 0 where there is no way between these files."""
    if (to - at) % mmap.PAGESIZE:
        return 0
    try:
        return os.copy_file_range(source, target, nbytes, at, to)
    except OSError:
        return 0


def _copy_byte(source: int, at: int, target: int, to: int, chunk: FileRange) -> int:
    """Copy one byte where more could not be copied: this says why."""
    with _reading(chunk):
        data = os.pread(source, 1, at)
    if not data:
        raise _changed(chunk)
    return os.pwrite(target, data, to)
