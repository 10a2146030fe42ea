"""Copy chunks into a file at an offset, without reading whole file ranges into memory.

If source and output have the same offset within a page, copy_file_range(2) copies inside the
kernel, and shares blocks (reflink) on file systems that support it. Otherwise the kernel would
fill each page in two steps, and pieces that fill whole pages of the output take 2/3 of the time
(one core, ext4). The same pieces are used if the kernel cannot copy between two file systems.
Holes of a sparse source stay holes.

Blocks for large data are reserved before the write: then ext4 has less to do for each page.
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
from runtime.serial.stream import FileRange

from ..files.chunks import nbytes_of

if TYPE_CHECKING:
    from runtime.serial.stream import Chunk

    Progress = Callable[[int, int], None]

# Python runs signal handlers between two steps.
_STEP_NBYTES = 16 << 20
# At once through memory, as in the core's copy_range: what fits the processor's cache. Pieces end
# on multiples of their size in the output.
_MEMORY_NBYTES = 64 << 10
# From this size on the blocks are reserved before the write.
_MUCH = 1 << 20


def write_chunks(output: int, offset: int, chunks: Sequence[Chunk], report: Progress) -> None:
    """Write chunks to a file, in order and without gaps.

    `output` is the descriptor of a regular file, with zeros for the sources' holes. `report` is
    called often with (bytes done, bytes in all). Raises ExportError if a source cannot be read or
    changes meanwhile, and OSError if the output cannot be written.
    """
    start, total = 0, nbytes_of(chunks)
    for chunk in chunks:
        for done in _write_chunk(output, offset + start, chunk):
            report(start + done, total)
        start += nbytes_of([chunk])


def _write_chunk(output: int, offset: int, chunk: Chunk) -> Iterator[int]:
    """Write one chunk; yield the number of bytes done after each piece."""
    if isinstance(chunk, FileRange):
        return _copy_range(output, offset, chunk)
    return _write_view(output, offset, memoryview(chunk))


def _write_view(output: int, offset: int, view: memoryview) -> Iterator[int]:
    done = 0
    _reserve(output, offset, len(view))
    while done < len(view):
        end = done + _up_to(offset + done, _MEMORY_NBYTES)
        done += os.pwrite(output, view[done:end], offset + done)
        yield done


def _reserve(output: int, offset: int, nbytes: int) -> None:
    if nbytes >= _MUCH:
        reserve(output, offset, nbytes)


def _up_to(offset: int, size: int) -> int:
    """Return the distance from an offset to the next multiple of a size."""
    return size - offset % size


def _copy_range(output: int, offset: int, chunk: FileRange) -> Iterator[int]:
    move = offset - chunk.offset  # from an offset in the source to that in the output
    with _unchanging(chunk) as source:
        for at, end in _data_parts(source, chunk.offset, chunk.offset + chunk.nbytes):
            _reserve(output, at + move, end - at)
            while at < end:
                nbytes = min(end - at, _up_to(at + move, _STEP_NBYTES))
                at += (
                    _copy_in_kernel(source, at, output, at + move, nbytes)
                    or copy_range(source, at, output, at + move, nbytes)
                    or _copy_byte(source, at, output, at + move, chunk)
                )
                yield at - chunk.offset


@contextlib.contextmanager
def _unchanging(chunk: FileRange) -> Iterator[int]:
    """Open a range's file, and raise if it changed when the block ends."""
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
    """Turn an OSError into an error about the source."""
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
    """Iterate over the parts of a range between holes, as (start, end): lseek(2), SEEK_DATA."""
    while start < end:
        try:
            start = os.lseek(source, start, os.SEEK_DATA)
            hole = os.lseek(source, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:  # a hole to the end
                return
            hole = end  # this file system does not report holes
        if start < end:
            yield start, min(hole, end)
        start = hole


def _copy_in_kernel(source: int, at: int, output: int, to: int, nbytes: int) -> int:
    """Copy up to `nbytes` and return how many; 0 if the kernel cannot copy between these files."""
    if (to - at) % mmap.PAGESIZE:
        return 0
    try:
        return os.copy_file_range(source, output, nbytes, at, to)
    except OSError:
        return 0


def _copy_byte(source: int, at: int, output: int, to: int, chunk: FileRange) -> int:
    """Copy one byte if the faster ways copied none: a failure raises the reason."""
    with _reading(chunk):
        data = os.pread(source, 1, at)
    if not data:
        raise _changed(chunk)
    return os.pwrite(output, data, to)
