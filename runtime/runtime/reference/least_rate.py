"""A least rate for bytes that a server sends: a slower source is given up.

Calls of a library that waits for a server cannot be ended from here, so another thread makes them.
"""

from __future__ import annotations

import os
import threading
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING

from ..error import shown

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

VARIABLE = "DSO_FETCH_RATE"
_DEFAULT = 1000  # bytes per second
_MOST_PIECES = 4  # that are read ahead


def least_rate() -> int:
    """Return the least bytes per second; 0 for any. Raises ValueError for a malformed variable."""
    text = os.environ.get(VARIABLE, "") or str(_DEFAULT)
    if not (text.isascii() and text.isdigit()):
        raise ValueError(
            f"{VARIABLE}: expected bytes per second, or 0 for any, found {shown(text)}"
        )
    return int(text)


def at_least(
    rate: int, window_s: float, pieces: Callable[[], Generator[bytes | memoryview]]
) -> Generator[bytes | memoryview]:
    """Iterate over pieces that another thread reads; the caller's time does not count.

    Raises TimeoutError for fewer than `rate` bytes per second during `window_s` seconds.
    """
    reader = _Reader(pieces)
    reader.start()
    left, nbytes = window_s, 0
    try:
        while True:
            start = monotonic()
            try:
                found = reader.pieces.get(timeout=left if rate else None)
            except Empty:
                text = f"{nbytes} bytes so far, expected at least {rate} bytes per second over"
                hint = f"try again, or set {VARIABLE} to a lower rate"
                raise TimeoutError(f"{text} {window_s:g} s; {hint}") from None
            if found is None:
                return
            if isinstance(found, Exception):
                raise found
            left -= monotonic() - start
            left = max(0.0, min(window_s, left + len(found) / (rate or 1)))
            nbytes += len(found)
            yield found
            reader.room.release()
    finally:
        reader.is_stopped = True
        reader.room.release()


class _Reader(threading.Thread):
    """Reads pieces, until the last one, an error, or `is_stopped`."""

    def __init__(self, source: Callable[[], Generator[bytes | memoryview]]) -> None:
        super().__init__(name="dso-fetch", daemon=True)
        self.pieces: SimpleQueue[bytes | memoryview | Exception | None] = SimpleQueue()
        self.room = threading.Semaphore(_MOST_PIECES)
        self.is_stopped = False
        self._source = source

    def run(self) -> None:
        """Read, and close the source at the end."""
        end: Exception | None = None
        try:
            source = self._source()
            try:
                for piece in source:
                    self.pieces.put(piece)
                    self.room.acquire()
                    if self.is_stopped:
                        return
            finally:
                source.close()
        except Exception as error:
            end = error
        self.pieces.put(end)
