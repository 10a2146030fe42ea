"""A copy of a file in sealed memory: what is verified is what runs."""

from __future__ import annotations

import os
from hashlib import sha256
from stat import S_ISREG
from typing import TYPE_CHECKING

from ..error import VerifyError
from ..serial.mapped_file import read_small, reason_of
from .bundle import most_nbytes
from .mapped import MappedPieces, pieces_of_blob, separate_pieces
from .sealed_memory import around_hole, mapped, sealed_file
from .tree import PIECE_NBYTES
from .verify import SUFFIX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .statement import Statement

_STEP = 1 << 20


class Sealed:
    """A file in memory that no process can change any more.

    `path` is the file that was copied, or the name of the bytes, for messages; `real_path` the file
    that was opened, without symbolic links, or "". The caller closes `descriptor`, or gives it to
    the library. `pieces` stay in the file: `data` has zeros in this hole of the copy.
    """

    def __init__(
        self, path: str, real_path: str, descriptor: int, pieces: MappedPieces | None = None
    ) -> None:
        self.path, self.real_path, self.descriptor = path, real_path, descriptor
        self.data = mapped(descriptor)
        self.pieces = pieces
        self._sha256 = ""
        self._statement: Statement | None = None

    @property
    def name(self) -> str:
        """The name by which this process opens the memory."""
        return f"/proc/self/fd/{self.descriptor}"

    @property
    def signed_name(self) -> str | None:
        """The name that a signature must have; None for bytes."""
        return os.path.basename(self.path) if self.real_path else None

    @property
    def hole(self) -> tuple[int, int] | None:
        """The (offset, nbytes) of the pieces that were not copied, if there are any."""
        return (self.pieces.offset, self.pieces.nbytes) if self.pieces else None

    def accept(self, statement: Statement) -> None:
        """Keep a statement that a rule verified: it verifies the pieces that were not copied."""
        self._statement = statement
        if self.pieces is not None:
            self.pieces.accept(statement)

    @property
    def identity(self) -> tuple[object, ...]:
        """Equal for files of which one module serves: equal bytes; with a hole, also one file."""
        signed = self._statement
        if self.pieces is not None and signed is not None:
            return signed.sha256, *self.pieces.key
        return (self.sha256 if signed is None or signed.room is not None else signed.sha256,)

    @property
    def sha256(self) -> str:
        """The digest of all bytes, in hexadecimal digits; those in a hole are verified for it."""
        if not self._sha256:
            start, nbytes = self.hole or (0, 0)
            digest = sha256(self.data[:start])
            for piece in self.pieces.verified(0, nbytes // PIECE_NBYTES) if self.pieces else ():
                digest.update(piece)
            digest.update(self.data[start + nbytes :])
            self._sha256 = digest.hexdigest()
        return self._sha256

    def sidecar(self) -> memoryview | None:
        """Return the bundle beside the file; None if there is none."""
        beside = f"{self.path}{SUFFIX}"
        if not self.real_path or not os.path.lexists(beside):
            return None
        try:
            return read_small(beside, most_nbytes(len(self.data)))
        except (OSError, ValueError) as error:
            text = f"{beside}: the bundle cannot be read: {reason_of(error)}"
            raise VerifyError(text, path=beside, reason="io") from error


def seal_file(path: str, may_map: Callable[[str], bool], descriptor: int | None = None) -> Sealed:
    """Copy a file; raises VerifyError if it cannot be read or is not a regular file.

    The blob is left out where it can be, if `may_map` returns True for the file's real path. A
    descriptor of the file is read instead of `path`, and closed.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        source = os.open(path, flags) if descriptor is None else descriptor
        try:
            state = os.fstat(source)
            if not S_ISREG(state.st_mode):
                raise ValueError("not a regular file")
            real_path = os.readlink(f"/proc/self/fd/{source}")
            if may_map(real_path):
                return _seal_around_blob(path, real_path, source, state.st_size)
            return Sealed(path, real_path, sealed_file(_pieces_of(source, state.st_size)))
        finally:
            os.close(source)
    except (OSError, ValueError) as error:
        text = f"{path}: {reason_of(error)}"
        raise VerifyError(text, path=path, reason="io") from error


def _seal_around_blob(path: str, real_path: str, source: int, nbytes: int) -> Sealed:
    """Copy a file without the whole pieces of its blob."""
    guess = separate_pieces(path, source, nbytes)
    descriptor, hole = around_hole(source, nbytes, guess, pieces_of_blob)
    try:
        pieces = MappedPieces(path, source, hole) if hole[1] else None
        return Sealed(path, real_path, descriptor, pieces)
    except BaseException:
        os.close(descriptor)
        raise


def seal_bytes(data: memoryview, name: str) -> Sealed:
    """Copy bytes; raises VerifyError if there is no memory for them."""
    try:
        return Sealed(name, "", sealed_file([data]))
    except OSError as error:
        text = f"{name}: no sealed memory: {error.strerror}"
        raise VerifyError(text, path=name, reason="io") from error


def _pieces_of(source: int, nbytes: int) -> Iterator[bytes]:
    """Read a file to its end, or to the size that it had."""
    while nbytes and (piece := os.read(source, min(_STEP, nbytes))):
        nbytes -= len(piece)
        yield piece
