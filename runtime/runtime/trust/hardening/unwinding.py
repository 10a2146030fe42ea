"""Tables for unwinding (.eh_frame) that start-up code registers, for the whole process.

The layout is that of the Linux Standard Base, "Exception Frames".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...elf import PF_X

if TYPE_CHECKING:
    from .image import Image

_RELATIVE = 0x1B  # DW_EH_PE_pcrel | DW_EH_PE_sdata4
_INDIRECT = 0x80
_MAX_ENTRIES = 1 << 20
_MAX_AUGMENTATION = 8


def describes_own_code(image: Image, address: int) -> bool:
    """Return True if a table describes functions of the library itself, and no others.

    An exception that meets a described address follows the table, in any library. A table that
    compilers do not write gives False. Raises ValueError if it leaves the file.
    """
    for _ in range(_MAX_ENTRIES):
        nbytes = _number(image, address)
        if image.relocations_at(address, nbytes + 4):
            return False
        if nbytes == 0:
            return True
        start = address + 4
        if cie := _number(image, start):
            first = start + 4 + _number(image, start + 4, is_signed=True)
            code = image.segment_at(first, _number(image, start + 8))
            if code is None or not code.flags & PF_X or not _is_relative(image, start - cie):
                return False
        address = start + nbytes
    return False


def _is_relative(image: Image, cie: int) -> bool:
    """Return True if the entries of a CIE have addresses of 32 bits, relative to their place."""
    text = bytes(image.at(cie + 9, _MAX_AUGMENTATION)).partition(b"\0")[0].decode("latin-1")
    at = cie + 9 + len(text) + 1
    if image.at(cie + 8, 1)[0] != 1 or not text.startswith("z"):
        return False
    at += 3 + 1  # code and data alignment, return register, length of what follows: one byte each
    for letter in text[1:]:
        encoding = image.at(at, 1)[0]
        if letter == "R":
            return encoding == _RELATIVE
        if letter not in "PL" or encoding & ~_INDIRECT != _RELATIVE:
            return False
        at += 5 if letter == "P" else 1
    return False


def _number(image: Image, address: int, *, is_signed: bool = False) -> int:
    return int.from_bytes(image.at(address, 4), "little", signed=is_signed)
