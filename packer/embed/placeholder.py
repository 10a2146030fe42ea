"""The object that reserves a place for the bytes: a linker input, written without a compiler.

    .note.packer         24 bytes: a note "dso-packer", which gets a separate PT_NOTE
    .packer.blob         64 bytes for each symbol, which is defined here
    .note.gnu.property   the marks of landing pads and shadow stacks, so that the library keeps
                         them if all other objects have them
    .note.GNU-stack      empty: the stack is not executable

The note is 16-aligned, so that linkers do not merge it with the 4- and 8-aligned notes of the
system. After the fixed fields its name takes a multiple of 8 bytes, so that readers that assume
4- or 8-alignment agree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..elf import structures as elf
from ..elf.notes import property_note
from ..elf.structures import Header, Strings, SymbolEntry, make_header, pack, size_of, symbol_info
from .section_layout import PlannedSection, lay_out

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..machine import Machine

SECTION = ".packer.blob"
NOTE_SECTION = ".note.packer"
NOTE_ALIGNMENT = 16
SLOT_NBYTES = 64
NOTE = elf.NOTE.pack(11, 0, elf.NT_VERSION) + b"dso-packer\0\0"


def placeholder_object(symbols: Iterable[str], machine: Machine) -> bytes:
    """Write the object for a machine; each symbol gets a slot, in order."""
    names = Strings()
    info = symbol_info(elf.STB_GLOBAL, elf.STT_OBJECT)
    table = [SymbolEntry()] + [
        SymbolEntry(names.add(symbol), info, 0, 2, index * SLOT_NBYTES, SLOT_NBYTES)
        for index, symbol in enumerate(symbols)
    ]
    slots = bytes(SLOT_NBYTES * (len(table) - 1))
    marks = property_sections(machine)
    sections = [
        PlannedSection(NOTE_SECTION, elf.SHT_NOTE, NOTE, flags=elf.SHF_ALLOC, align=NOTE_ALIGNMENT),
        PlannedSection(SECTION, elf.SHT_PROGBITS, slots, flags=elf.SHF_ALLOC, align=SLOT_NBYTES),
        *marks,
        PlannedSection(".note.GNU-stack", elf.SHT_PROGBITS, b""),
        PlannedSection(
            ".symtab",
            elf.SHT_SYMTAB,
            pack(table),
            link=5 + len(marks),  # .strtab
            info=1,  # the first symbol that is not local
            align=8,
            entsize=size_of(SymbolEntry),
        ),
        PlannedSection(".strtab", elf.SHT_STRTAB, names.data),
    ]
    headers, body = lay_out(sections, size_of(Header))
    shoff = size_of(Header) + len(body)
    count = len(headers)
    header = make_header(elf.ET_REL, machine, num_programs=0, shoff=shoff, num_sections=count)
    return pack([header]) + body + pack(headers)


def property_sections(machine: Machine) -> list[PlannedSection]:
    """Return the section with the marks of landing pads and shadow stacks, if there are any."""
    note = property_note(machine)
    section = PlannedSection(".note.gnu.property", elf.SHT_NOTE, note, flags=elf.SHF_ALLOC, align=8)
    return [section] if note else []
