"""The object that keeps a place for the bytes: a linker input that is written byte by byte.

    .note.packer         24 bytes: a note "dso-packer", which gets a PT_NOTE of its own
    .packer.blob         64 bytes for each symbol, which is defined here
    .note.gnu.property   bytes go with landing pads and shadow stacks: the library bears the mark
                         if all other objects do
    .note.GNU-stack      empty: the stack need not be executable

The note is 16-aligned, so that linkers do not merge it with the 4- and 8-aligned ones of the
system. Its name ends on a multiple of 8 behind the fixed fields, so that it reads the same with
4- and 8-alignment.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

from ..elf.records import (
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
from .section_layout import Section, lay_out

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..target import Machine

SECTION = ".packer.blob"
NOTE_SECTION = ".note.packer"
NOTE_ALIGNMENT = 16
SLOT_NBYTES = 64
# Elf64_Nhdr: n_namesz, n_descsz, n_type (1: a version, which the name says), then the name.
NOTE = Struct("<III12s").pack(11, 0, 1, b"dso-packer\0")
# "Linux Extensions to gABI", Program Property: a note NT_GNU_PROPERTY_TYPE_0 of the owner "GNU"
# with one property, padded to 8: pr_type, pr_datasz, bits.
_PROPERTY = Struct("<III4sIII4x")


def placeholder_object(symbols: Iterable[str], machine: Machine) -> bytes:
    """Write the object.

    Parameters
    ----------
    symbols : iterable of str
        Each gets a slot, in this order.
    machine : Machine
        Whose objects it is linked with.
    """
    names = Strings()
    info = symbol_info(STB_GLOBAL, STT_OBJECT)
    table = [Symbol()] + [
        Symbol(names.add(symbol), info, 0, 2, index * SLOT_NBYTES, SLOT_NBYTES)
        for index, symbol in enumerate(symbols)
    ]
    slots = bytes(SLOT_NBYTES * (len(table) - 1))
    marks = _property_sections(machine)
    sections = [
        Section(NOTE_SECTION, SHT_NOTE, NOTE, flags=SHF_ALLOC, align=NOTE_ALIGNMENT),
        Section(SECTION, SHT_PROGBITS, slots, flags=SHF_ALLOC, align=SLOT_NBYTES),
        *marks,
        Section(".note.GNU-stack", SHT_PROGBITS, b""),
        Section(
            ".symtab",
            SHT_SYMTAB,
            pack(table),
            link=5 + len(marks),  # .strtab
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


def _property_sections(machine: Machine) -> list[Section]:
    note = property_note(machine)
    section = Section(".note.gnu.property", SHT_NOTE, note, flags=SHF_ALLOC, align=8)
    return [section] if note else []


def property_note(machine: Machine) -> bytes:
    """The note that says that an object bears landing pads and shadow stacks, if there are any."""
    kind, bits = machine.feature_1_and
    return _PROPERTY.pack(4, 16, 5, b"GNU\0", kind, 4, bits) if bits else b""
