"""Chunks of bytes that an export writes: their sizes, the blob's header, and streams."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from runtime.abi import HEADER_NBYTES
from runtime.error import ExportError
from runtime.serial.stream import FileRange

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from runtime.serial.stream import Chunk

_PIECE_NBYTES = 1 << 20


def nbytes_of(chunks: Sequence[Chunk]) -> int:
    """Return the number of bytes in all chunks."""
    return sum(chunk.nbytes if not isinstance(chunk, bytes) else len(chunk) for chunk in chunks)


def with_header(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Put the u64 nbytes before the blob: the symbol points to it."""
    return [nbytes_of(chunks).to_bytes(HEADER_NBYTES, "little"), *chunks]


class Contents(NamedTuple):
    """The bytes of several symbols, one after another."""

    chunks: list[Chunk]  # all of them, with zeros in between
    places: list[tuple[int, int]]  # the place of each symbol from the start of the first


def join(symbols: Mapping[str, Sequence[Chunk]], alignment: int) -> Contents:
    """Put the bytes of symbols one after another, each aligned."""
    chunks: list[Chunk] = []
    places: list[tuple[int, int]] = []
    offset = 0
    for own in symbols.values():
        chunks.append(bytes(-offset % alignment))
        offset += -offset % alignment
        places.append((offset, nbytes_of(own)))
        chunks += own
        offset += nbytes_of(own)
    return Contents(chunks, places)


def pieces(chunks: Sequence[Chunk]) -> Iterator[memoryview]:
    """Iterate over the bytes in pieces of at most 1 MiB; file ranges are read on demand.

    Raises ExportError if a file cannot be read, or if it is shorter than when its range was taken.
    """
    for chunk in chunks:
        if isinstance(chunk, FileRange):
            yield from _file_pieces(chunk)
        else:
            view = memoryview(chunk)
            for start in range(0, len(view), _PIECE_NBYTES):
                yield view[start : start + _PIECE_NBYTES]


def _file_pieces(chunk: FileRange) -> Iterator[memoryview]:
    left = chunk.nbytes
    try:
        with open(chunk.path, "rb", buffering=0) as file:
            file.seek(chunk.offset)
            while left:
                data = file.read(min(left, _PIECE_NBYTES))
                if not data:
                    text = f"{chunk.path}: {left} bytes short; the file changed while it was read"
                    raise ExportError(text, path=chunk.path)
                left -= len(data)
                yield memoryview(data)
    except OSError as error:
        text = f"{chunk.path}: cannot be read: {error.strerror or error}"
        raise ExportError(text, path=chunk.path) from error
