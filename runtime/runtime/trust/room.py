"""The room of a library for its signature: the bytes of ``__packer_signature``.

They are zeros until `packer sign --embed` stores the bundle there, with zeros after it. A signature
covers the file with zeros in the room.
"""

from __future__ import annotations

from .._core import ElfFile
from ..abi import ANY_MACHINE, BUNDLE
from ..error import LibraryLoadError, VerifyError


def find_room(path: str, data: memoryview) -> tuple[int, int] | None:
    """Return the (file offset, nbytes) of the room; None if the file is not a library with one.

    `path` is ``/proc/self/fd/N`` for an open file; `data` are its bytes.
    """
    try:
        found = ElfFile(path, ANY_MACHINE).data(BUNDLE)
    except LibraryLoadError:
        return None
    return found if found is not None and sum(found) <= len(data) else None


def bundle_in_room(data: memoryview, room: tuple[int, int] | None, where: str) -> bytes | None:
    """Return the bundle that is in the room; None if the room is empty.

    Raises VerifyError if other bytes than zeros follow it, which no signature covers.
    """
    if room is None:
        return None
    bundle, _, rest = bytes(data[room[0] : sum(room)]).partition(b"\0")
    if rest.strip(b"\0"):
        text = f"{where}: {BUNDLE}: bytes after the bundle, expected zeros"
        raise VerifyError(f"{text}; the file was changed", path=where, reason="bundle")
    return bundle or None
