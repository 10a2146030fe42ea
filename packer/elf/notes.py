"""Control-flow protection that the linker marked the whole file with: CET, BTI, PAC.

A note of type NT_GNU_PROPERTY_TYPE_0 and owner "GNU" holds properties:

    u32 pr_type, u32 pr_datasz, data, padded to 8

(Linux gABI extensions, Program Property; x86-64 psABI; AArch64 and RISC-V ELF ABIs)
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .image import Image

PT_NOTE, PT_GNU_PROPERTY = 4, 0x6474E553
_NT_GNU_PROPERTY_TYPE_0 = 5
_NOTE = Struct("<III")  # Elf64_Nhdr: n_namesz, n_descsz, n_type
_PROPERTY = Struct("<II")
_MAX_SEGMENTS, _MAX_NBYTES = 16, 1 << 16

# By e_machine: the property whose bits every input of the link had, and what they are called.
_AND_FEATURES = {
    62: (0xC0000002, ("IBT", "SHSTK")),
    183: (0xC0000000, ("BTI", "PAC", "GCS")),
    243: (0xC0000000, ("ZICFILP", "ZICFISS")),
}


def read_branch_protection(image: Image) -> tuple[str, ...]:
    """Name what the code is marked for; nothing of a note that is damaged."""
    number, names = _AND_FEATURES.get(image.machine_number, (0, ()))
    notes = [s for s in image.segments if s.type in (PT_GNU_PROPERTY, PT_NOTE)]
    for segment in sorted(notes, key=lambda s: s.type == PT_NOTE)[:_MAX_SEGMENTS]:
        data = bytes(image.data[segment.offset :][: min(segment.nbytes, _MAX_NBYTES)])
        for found, value in _properties(data):
            if found == number:
                return tuple(name for bit, name in enumerate(names) if value >> bit & 1)
    return ()


def _properties(notes: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while len(notes) - at >= _NOTE.size:
        name_nbytes, nbytes, kind = _NOTE.unpack_from(notes, at)
        start = at + _NOTE.size + name_nbytes + -name_nbytes % 4
        is_gnu = notes[at + _NOTE.size : start] == b"GNU\0"
        if is_gnu and kind == _NT_GNU_PROPERTY_TYPE_0:
            yield from _values(notes[start : start + nbytes])
        at = start + nbytes + -nbytes % 4


def _values(data: bytes) -> Iterator[tuple[int, int]]:
    at = 0
    while len(data) - at >= _PROPERTY.size:
        kind, nbytes = _PROPERTY.unpack_from(data, at)
        start = at + _PROPERTY.size
        yield kind, int.from_bytes(data[start : start + min(nbytes, 8)], "little")
        at = start + nbytes + -nbytes % 8
