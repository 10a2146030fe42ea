"""Chunks of a blob as they go into a library: the header in front, and streams of bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from runtime.abi import HEADER_NBYTES
from runtime.error import ExportError
from runtime.stream import FileRange

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from runtime.stream import Chunk

_PIECE_NBYTES = 1 << 20


def nbytes_of(chunks: Sequence[Chunk]) -> int:
    """The bytes in all chunks."""
    return sum(chunk.nbytes if not isinstance(chunk, bytes) else len(chunk) for chunk in chunks)


def with_header(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Put the u64 nbytes in front, as it lies behind the blob's symbol."""
    return [nbytes_of(chunks).to_bytes(HEADER_NBYTES, "little"), *chunks]


class Contents(NamedTuple):
    """The bytes of several symbols as they lie one behind another.

    Attributes
    ----------
    chunks : list of chunks
        All of them, with zeros in between.
    places : list of (offset, nbytes)
        Where each symbol lies from the start of the first.
    """

    chunks: list[Chunk]
    places: list[tuple[int, int]]


def join(symbols: Mapping[str, Sequence[Chunk]], alignment: int) -> Contents:
    """Put the bytes of symbols one behind another, each aligned."""
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
    """Walk the bytes in pieces of at most 1 MiB; file ranges are read as they come.

    Raises
    ------
    ExportError
        A file cannot be read, or has become shorter since its range was taken.
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
                    text = f"{chunk.path}: {left} bytes short; it changed while it was read"
                    raise ExportError(text, path=chunk.path)
                left -= len(data)
                yield memoryview(data)
    except OSError as error:
        text = f"{chunk.path}: cannot be read: {error.strerror or error}"
        raise ExportError(text, path=chunk.path) from error
