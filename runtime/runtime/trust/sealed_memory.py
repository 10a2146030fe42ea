"""Files in memory that no process can change: what was checked or verified is what is loaded."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Range = tuple[int, int]


def sealed_file(pieces: Iterable[bytes | memoryview]) -> int:
    """Return the descriptor of a sealed file with these bytes; raises OSError."""
    descriptor = _new()
    try:
        write_pieces(descriptor, pieces)
        _seal(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def around_hole(
    source: int, nbytes: int, guess: Range, confirm: Callable[[str], Range]
) -> tuple[int, Range]:
    """Copy an open file of `nbytes` to a sealed file, except for a hole (offset, nbytes).

    `confirm` gets the name of the copy around the `guess`, and returns the hole, which is copied
    as well where it exceeds the guess; (0, 0) means no hole. Returns the descriptor and the hole. A
    file that is shorter than `nbytes` gives a copy of its size, or zeros. Raises OSError.
    """
    descriptor = _new()
    try:
        os.ftruncate(descriptor, nbytes)
        _copy(source, descriptor, 0, guess[0])
        _copy(source, descriptor, sum(guess), nbytes)
        found = confirm(f"/proc/self/fd/{descriptor}") if guess[1] else (0, 0)
        start, end = max(found[0], guess[0]), min(sum(found), sum(guess))
        hole = (start, end - start) if start < end else (guess[0], 0)
        _copy(source, descriptor, guess[0], hole[0])
        _copy(source, descriptor, sum(hole), sum(guess))
        _seal(descriptor)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, hole


def _new() -> int:
    return os.memfd_create("packer", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)


def _seal(descriptor: int) -> None:
    import fcntl

    seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
    fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)


def _copy(source: int, descriptor: int, start: int, end: int) -> None:
    """Copy a range to the same offset; stop where the file ends."""
    os.lseek(descriptor, start, os.SEEK_SET)
    while start < end and (nbytes := os.sendfile(descriptor, source, start, end - start)):
        start += nbytes


def write_pieces(descriptor: int, pieces: Iterable[bytes | memoryview]) -> None:
    """Write all of them (Linux writes at most 2 GiB at a time); raises OSError."""
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def mapped(descriptor: int) -> memoryview:
    """View all bytes of an open file.

    The map is private: before Linux 6.7 a file that is sealed against writes has no shared one.
    """
    from mmap import MAP_PRIVATE, PROT_READ, mmap

    size = os.fstat(descriptor).st_size
    return memoryview(mmap(descriptor, size, MAP_PRIVATE, PROT_READ) if size else b"")
