"""Files in memory that no process can change: what was checked or verified is what is loaded."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def sealed_file(pieces: Iterable[bytes | memoryview]) -> int:
    """Return the descriptor of a sealed file with these bytes; raises OSError."""
    import fcntl

    descriptor = os.memfd_create("packer", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        write_pieces(descriptor, pieces)
        seals = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


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
