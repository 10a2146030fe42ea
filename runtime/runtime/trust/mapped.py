"""Weights that stay in the file: the pieces of the blob that are mapped, not copied.

The blob of a library that packer wrote has a segment that nothing else refers to. Its whole pieces
stay holes in the sealed copy. After dlopen the pages of the file are mapped over them, and no piece
can be read before it was verified here with the leaves of the signed tree.
"""

from __future__ import annotations

import os
from operator import itemgetter
from struct import Struct
from typing import TYPE_CHECKING

from .._core import ElfFile
from ..abi import BLOB_SYMBOLS
from ..error import LibraryLoadError, VerifyError
from .tree import PIECE_NBYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .._core import Library
    from .statement import Statement

    Range = tuple[int, int]

_HEADER_NBYTES, _PROGRAM = 64, Struct("<IIQQQQQQ")  # Elf64_Ehdr, Elf64_Phdr
_PT_LOAD, _PF_R, _MAX_PROGRAMS = 1, 4, 64


class MappedPieces:
    """The pieces of one file that are verified when they are used."""

    def __init__(self, path: str, source: int, place: Range) -> None:
        self.offset, self.nbytes = place
        self._path = path
        self._source = os.dup(source)  # os.dup is close-on-exec
        state = os.fstat(source)
        times = state.st_mtime_ns, state.st_ctime_ns
        self.key = (state.st_dev, state.st_ino, state.st_size, *times)
        self._statement: Statement | None = None

    def __del__(self) -> None:
        if hasattr(self, "_source"):
            os.close(self._source)

    def accept(self, statement: Statement) -> None:
        """Verify pieces with this statement from now on; another one must have the same leaves."""
        known = self._statement or statement
        if known.leaves != statement.leaves:
            text = f"{self._path}: two signatures of different files; sign the file again"
            raise VerifyError(text, path=self._path, reason="digest")
        self._statement = known

    def map_into(self, library: Library) -> None:
        """Map the pieces into the library, which was opened without them."""
        place = self.offset, self.nbytes
        library.map_pieces(self._source, *place, PIECE_NBYTES, self.verify)

    def verify(self, first: int, count: int, is_copied: bool = False) -> bytearray | None:
        """Verify pieces, counted from the first one here; called by the core before they are read.

        They are returned if they have more than tensors: the core replaces them by these copies.
        They are read as a file: a file that was cut gives an error, while a page that is mapped
        beyond its end would end the process.
        """
        copy = bytearray() if is_copied else None
        for piece in self.verified(first, count):
            if copy is not None:
                copy += piece
        return copy

    def verified(self, first: int, count: int) -> Iterator[memoryview]:
        """Iterate over verified pieces; each is valid until the next one."""
        assert self._statement is not None
        piece = memoryview(bytearray(PIECE_NBYTES))
        before = self.offset // PIECE_NBYTES
        for index in range(before + first, before + first + count):
            if not _read_whole(self._source, piece, index * PIECE_NBYTES):
                text = f"{self._path}: ends before byte {(index + 1) * PIECE_NBYTES:#x}"
                hint = "expected the size that was signed; the file was cut after it was opened"
                raise VerifyError(f"{text}, {hint}", path=self._path, reason="size")
            self._statement.verify_piece(index, piece, self._path)
            yield piece


def _read_whole(source: int, piece: memoryview, offset: int) -> bool:
    done = 0
    while done < len(piece):
        nbytes = os.preadv(source, [piece[done:]], offset + done)
        if nbytes == 0:
            return False
        done += nbytes
    return True


def separate_pieces(path: str, source: int, nbytes: int) -> Range:
    """Return the whole pieces of the segment that may be the blob's, by the file's headers.

    They are a guess, which `pieces_of_blob` confirms; (0, 0) if there are none.
    """
    header = os.pread(source, _HEADER_NBYTES, 0)
    if len(header) < _HEADER_NBYTES or header[:6] != b"\x7fELF\x02\x01":
        return 0, 0
    start, count = int.from_bytes(header[32:40], "little"), int.from_bytes(header[56:58], "little")
    if start > nbytes or count > _MAX_PROGRAMS:
        return 0, 0
    table = os.pread(source, count * _PROGRAM.size, start)
    found = (0, 0)
    for kind, flags, offset, _, _, size, *_ in _PROGRAM.iter_unpack(
        table[: len(table) // _PROGRAM.size * _PROGRAM.size]
    ):
        if kind == _PT_LOAD and flags == _PF_R:
            found = max(found, _whole_pieces(offset, min(offset + size, nbytes)), key=itemgetter(1))
    return found


def pieces_of_blob(name: str) -> Range:
    """Return the whole pieces of the blob, if nothing else refers to its segment; else (0, 0).

    `name` opens the copy, which has a hole for what `separate_pieces` found.
    """
    try:
        image = ElfFile(name)
        for symbol in BLOB_SYMBOLS:
            if image.is_separate(symbol) and (place := image.data(symbol)) is not None:
                return _whole_pieces(place[0], sum(place))
    except LibraryLoadError:
        pass  # the load says why, after the verification of the whole file
    return 0, 0


def _whole_pieces(start: int, end: int) -> Range:
    first, stop = -(-start // PIECE_NBYTES), end // PIECE_NBYTES
    return (first * PIECE_NBYTES, (stop - first) * PIECE_NBYTES) if first < stop else (0, 0)
