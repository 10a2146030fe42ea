"""The hash tree over the pieces of a file: RFC 9162, Merkle Tree Hash, with SHA-256.

    leaf = SHA-256(00 || piece)      node = SHA-256(01 || left || right)

A piece has 1 MiB, the last one what remains. The leaves let a reader verify one piece without the
others; the root binds all of them.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

PIECE_NBYTES = 1 << 20
LEAF_NBYTES = 32


def num_pieces(nbytes: int) -> int:
    """Return the number of pieces of a file with this many bytes."""
    return -(-nbytes // PIECE_NBYTES)


def pieces(data: memoryview, room: tuple[int, int] | None) -> Iterator[memoryview]:
    """Iterate over the pieces; the range `room` (offset, nbytes) reads as zeros."""
    begin, end = (room[0], sum(room)) if room else (0, 0)
    for start in range(0, len(data), PIECE_NBYTES):
        piece = data[start : start + PIECE_NBYTES]
        low, high = max(begin - start, 0), min(end - start, len(piece))
        if low < high:
            copy = bytearray(piece)
            copy[low:high] = bytes(high - low)
            piece = memoryview(copy)
        yield piece


def leaf_of(piece: memoryview) -> bytes:
    """Return the hash of one piece."""
    digest = sha256(b"\0")
    digest.update(piece)
    return digest.digest()


def root_of(leaves: bytes) -> bytes:
    """Return the root of the tree over concatenated leaves."""
    row = [leaves[i : i + LEAF_NBYTES] for i in range(0, len(leaves), LEAF_NBYTES)]
    while len(row) > 1:
        last = row[len(row) & ~1 :]  # an odd one moves up unchanged
        pairs = zip(row[::2], row[1::2], strict=False)
        row = [sha256(b"\1" + left + right).digest() for left, right in pairs] + last
    return row[0] if row else sha256().digest()
