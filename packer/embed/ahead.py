"""Copy a large blob while compiler and linker still run: two cores, and the disk, at work at once.

Where the bytes will lie in the file is not known before the link. So a large blob always lies at
LEAD, if what is linked fits in front of that, and can be written there beforehand; what is
linked then goes in front. What is left in between is a hole.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.error import ExportError, ToolchainError

from .chunks import nbytes_of
from .copy import write_chunks

if TYPE_CHECKING:
    from runtime.stream import Chunk

    from .copy import Report

LEAD = 1 << 20
# Below this a copy takes less time than a hole of LEAD bytes is worth.
LARGE = 64 << 20
_REPORT_SECONDS = 0.1


class Ahead:
    """Chunks on their way into a file of their own, from LEAD on.

    Attributes
    ----------
    path : Path
        The file; `finish` before it is used.
    """

    def __init__(self, path: Path, chunks: Sequence[Chunk]) -> None:
        self.path = path
        self._chunks = chunks
        self._done = (0, nbytes_of(chunks))
        self._stopped = False
        self._error: OSError | ExportError | None = None
        self._thread = threading.Thread(target=self._copy, name="copy ahead")
        self._thread.start()

    def finish(self, front: bytes, report: Report) -> None:
        """Wait until all bytes are there, tell meanwhile how many are, and put others in front.

        Raises
        ------
        ExportError, OSError
            As `copy.write_chunks` does.
        """
        while self._thread.is_alive():
            self._thread.join(_REPORT_SECONDS)
            report(*self._done)
        self.check()
        self._write(0, [front], _ignore)

    def check(self) -> None:
        """Raise what has stopped the copy so far, if anything has."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """End the copy where it is; the file is gone, unless it was renamed."""
        self._stopped = True
        self._thread.join()
        self.path.unlink(missing_ok=True)

    def _copy(self) -> None:
        try:
            self._write(LEAD, self._chunks, self._report)
        except _StoppedError:
            pass
        except (OSError, ExportError) as error:
            self._error = error

    def _write(self, offset: int, chunks: Sequence[Chunk], report: Report) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, LEAD + self._done[1])  # where sources have holes are zeros
            write_chunks(descriptor, offset, chunks, report)
        finally:
            os.close(descriptor)

    def _report(self, done: int, total: int) -> None:
        self._done = (done, total)
        if self._stopped:
            raise _StoppedError


def _ignore(_done: int, _total: int) -> None:
    pass


class _StoppedError(Exception):
    """Nobody wants the bytes any more."""


@contextlib.contextmanager
def copying_ahead(path: Path, chunks: Sequence[Chunk]) -> Iterator[Ahead | None]:
    """Copy chunks, if they are large, for the length of a block.

    Parameters
    ----------
    path : Path
        A file to make, on the output's file system.
    chunks : sequence of chunks
        All that goes into the segment.

    Yields
    ------
    Ahead or None
        None where they are not large.

    Raises
    ------
    OSError
        The linker broke off, and the copy before it: both for want of space.
    """
    if nbytes_of(chunks) < LARGE:
        yield None
        return
    ahead = Ahead(path, chunks)
    try:
        yield ahead
    except ToolchainError:
        ahead.stop()
        ahead.check()
        raise
    finally:
        ahead.stop()
