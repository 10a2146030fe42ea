"""Bytes that an export reserves in a library, which a later step fills (docs/format.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.abi import SIGNATURE
from runtime.error import ExportError

from ..files.text import path_error

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from runtime.stream import Chunk

MAX_NBYTES = 1 << 26


def reserved(
    signature_room: int, output: str | os.PathLike[str], suffix: str, system_lib: bool
) -> dict[str, Sequence[Chunk]]:
    """Return the symbol of the room for a signature, with its zeros; empty for a room of 0 bytes.

    The checksums do not list it, since its bytes change after the export.

    Raises
    ------
    ExportError
        If the output is no shared library, or if the size is out of range.
    """
    if not 0 <= signature_room <= MAX_NBYTES:
        text = f"signature_room {signature_room}, expected 0 to {MAX_NBYTES} bytes"
        raise ExportError(text)
    if signature_room and (suffix != "so" or system_lib):
        found = "a system library" if system_lib else f".{suffix}"
        text = f"signature_room is for shared libraries, found {found}; sign the linked library"
        raise path_error(output, text)
    return {SIGNATURE: [bytes(signature_room)]} if signature_room else {}
