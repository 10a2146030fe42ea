"""Chunks of a blob as they go into a library: the header in front, and streams of bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.abi import HEADER_NBYTES
from runtime.error import ExportError
from runtime.stream import FileRange

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runtime.stream import Chunk

_PIECE_NBYTES = 1 << 20


def nbytes_of(chunks: Sequence[Chunk]) -> int:
    """The bytes in all chunks."""
    return sum(chunk.nbytes if not isinstance(chunk, bytes) else len(chunk) for chunk in chunks)


def with_header(chunks: Sequence[Chunk]) -> list[Chunk]:
    """Put the u64 nbytes in front, as it lies behind the blob's symbol."""
    return [nbytes_of(chunks).to_bytes(HEADER_NBYTES, "little"), *chunks]


def pieces(chunks: Sequence[Chunk]) -> Iterator[memoryview]:
    """Walk the bytes in pieces of at most 1 MiB; file ranges are read as they come.

    Raises
    ------
    ExportError
        A file has become shorter since its range was taken.
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
    with open(chunk.path, "rb", buffering=0) as file:
        file.seek(chunk.offset)
        while left:
            data = file.read(min(left, _PIECE_NBYTES))
            if not data:
                text = f"{chunk.path}: {left} bytes short; it changed while it was read"
                raise ExportError(text, path=chunk.path)
            left -= len(data)
            yield memoryview(data)
