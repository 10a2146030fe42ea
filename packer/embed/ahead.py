"""Copy a large blob while compiler and linker run, to use two cores and the disk in parallel.

The linked size is not known before the link. So a large blob is always stored at offset LEAD, if
the linked part is smaller than that. The blob is written there beforehand, the linked part is
written to the start of the file later, and a hole remains in between.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.error import ExportError, ToolchainError

from ..files.chunks import nbytes_of
from .copy import write_chunks

if TYPE_CHECKING:
    from runtime.serial.stream import Chunk

    from .copy import Progress

LEAD = 1 << 20
# A smaller blob is copied so fast that it is not worth a hole of LEAD bytes.
LARGE = 64 << 20
_REPORT_SECONDS = 0.1


class Ahead:
    """A thread that copies chunks to a new file, from offset LEAD on; `finish` completes it."""

    def __init__(self, path: Path, chunks: Sequence[Chunk]) -> None:
        self.path = path
        self._chunks = chunks
        self._done = (0, nbytes_of(chunks))
        self._stopped = False
        self._error: OSError | ExportError | None = None
        self._thread = threading.Thread(target=self._copy, name="copy ahead")
        self._thread.start()

    def finish(self, front: bytes, report: Progress) -> None:
        """Wait until all bytes are copied, report progress, then write `front` to the start."""
        while self._thread.is_alive():
            self._thread.join(_REPORT_SECONDS)
            report(*self._done)
        self.check()
        self._write(0, [front], _ignore)

    def check(self) -> None:
        """Raise the error that stopped the copy, if any."""
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Stop the copy and remove the file, unless it was renamed."""
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

    def _write(self, offset: int, chunks: Sequence[Chunk], report: Progress) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.ftruncate(descriptor, LEAD + self._done[1])  # holes of the sources stay holes
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
    """`Ahead.stop` was called."""


@contextlib.contextmanager
def copying_ahead(path: Path, chunks: Sequence[Chunk]) -> Iterator[Ahead | None]:
    """Copy chunks to a new file while a block runs; None if they are not large.

    If both the copy and the linker fail, the copy's error is raised: the disk is full.
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
