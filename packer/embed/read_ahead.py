"""Read a file in a thread of its own, ahead of whoever writes what it read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from queue import SimpleQueue
from threading import Thread

PIECE_NBYTES = 1 << 20
_NUM_PIECES = 4


class ReadAhead:
    """The bytes of a file from one position to another, in pieces of up to 1 MiB.

    A context, whose end stops it wherever it is. A piece is valid until the next is asked for; the
    last ends where the file does, if that is sooner.

    Parameters
    ----------
    descriptor : int
        Of the file; to be left open until the context ends.
    start, end : int
        Positions in bytes.

    Raises
    ------
    OSError
        By the iteration: the file cannot be read.
    """

    def __init__(self, descriptor: int, start: int, end: int) -> None:
        self._free: SimpleQueue[memoryview | None] = SimpleQueue()
        self._read: SimpleQueue[tuple[memoryview, int | OSError]] = SimpleQueue()
        self._thread = Thread(target=self._run, args=(descriptor, start, end), name="read ahead")

    def __enter__(self) -> ReadAhead:
        for _ in range(_NUM_PIECES):
            self._free.put(memoryview(bytearray(PIECE_NBYTES)))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._free.put(None)
        self._thread.join()

    def __iter__(self) -> Iterator[memoryview]:
        while True:
            buffer, nbytes = self._read.get()
            if isinstance(nbytes, OSError):
                raise nbytes
            if nbytes == 0:
                return
            yield buffer[:nbytes]
            self._free.put(buffer)

    def _run(self, descriptor: int, at: int, end: int) -> None:
        nbytes = 1
        while nbytes and (buffer := self._free.get()) is not None:
            try:
                nbytes = os.preadv(descriptor, [buffer[: end - at]], at)
            except OSError as error:
                self._read.put((buffer, error))
                return
            self._read.put((buffer, nbytes))
            at += nbytes
