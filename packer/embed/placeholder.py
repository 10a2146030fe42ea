"""The object that keeps a place for the bytes: a linker input that is written byte by byte.

    .note.packer      24 bytes: a note "dso-packer", which gets a PT_NOTE of its own
    .packer.blob      64 bytes for each symbol, which is defined here
    .note.GNU-stack   empty: the stack need not be executable

The note is 8-aligned, so that linkers do not merge it with the 4-aligned ones of the system. Its
name ends on a multiple of 8 behind the fixed fields, so that it reads the same with 4-alignment.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct

from .elf import (
    ET_REL,
    SHF_ALLOC,
    SHT_NOTE,
    SHT_PROGBITS,
    SHT_STRTAB,
    SHT_SYMTAB,
    STB_GLOBAL,
    STT_OBJECT,
    Header,
    Strings,
    Symbol,
    make_header,
    pack,
    size_of,
    symbol_info,
)
from .sections import Section, lay_out

SECTION = ".packer.blob"
SLOT_NBYTES = 64
# Elf64_Nhdr: n_namesz, n_descsz, n_type (1: a version, which the name says), then the name.
NOTE = Struct("<III12s").pack(11, 0, 1, b"dso-packer\0")


def placeholder_object(symbols: Iterable[str], machine: tuple[int, int]) -> bytes:
    """Write the object.

    Parameters
    ----------
    symbols : iterable of str
        Each gets a slot, in this order.
    machine : tuple of int
        As `target.machine_of` gives it.
    """
    names = Strings()
    info = symbol_info(STB_GLOBAL, STT_OBJECT)
    table = [Symbol()] + [
        Symbol(names.add(symbol), info, 0, 2, index * SLOT_NBYTES, SLOT_NBYTES)
        for index, symbol in enumerate(symbols)
    ]
    slots = bytes(SLOT_NBYTES * (len(table) - 1))
    sections = [
        Section(".note.packer", SHT_NOTE, NOTE, flags=SHF_ALLOC, align=8),
        Section(SECTION, SHT_PROGBITS, slots, flags=SHF_ALLOC, align=SLOT_NBYTES),
        Section(".note.GNU-stack", SHT_PROGBITS, b""),
        Section(
            ".symtab",
            SHT_SYMTAB,
            pack(table),
            link=5,  # .strtab
            info=1,  # the first symbol that is not local
            align=8,
            entsize=size_of(Symbol),
        ),
        Section(".strtab", SHT_STRTAB, names.data),
    ]
    headers, body = lay_out(sections, size_of(Header))
    shoff = size_of(Header) + len(body)
    elf = make_header(ET_REL, machine, num_programs=0, shoff=shoff, num_sections=len(headers))
    return pack([elf]) + body + pack(headers)
