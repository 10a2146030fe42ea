"""The purpose of the sections of an ELF file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...elf.structures import SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE

if TYPE_CHECKING:
    from ...elf.section_table import Section

# Section types that a dynamic loader reads, as readelf prints them.
_LINKING = {"STRTAB", "RELA", "HASH", "DYNAMIC", "NOTE", "REL", "DYNSYM", "RELR", "GNU_HASH"}
_LINKING |= {"VERDEF", "VERNEED", "VERSYM"}

ABOUT = {
    ".bss": "Variables with the initial value zero.",
    ".comment": "The compilers of the objects.",
    ".data": "Variables with an initial value.",
    ".data.rel.ro": "Constants that contain addresses, read-only after relocation.",
    ".dynamic": "Instructions for the dynamic loader.",
    ".dynstr": "Names of the dynamic symbols and of needed libraries.",
    ".dynsym": "Symbols that other files can use, or that this file needs.",
    ".eh_frame": "Rules to unwind the stack.",
    ".eh_frame_hdr": "An index of .eh_frame.",
    ".fini": "Code that runs when the library is closed.",
    ".fini_array": "Addresses of functions that run when the library is closed.",
    ".gnu.hash": "Hash table of the dynamic symbols.",
    ".gnu.version": "The version of each dynamic symbol.",
    ".gnu.version_d": "Versions that this library defines.",
    ".gnu.version_r": "Versions that this library needs.",
    ".got": "Addresses that the loader fills in.",
    ".got.plt": "Addresses of functions of other libraries, filled in by the loader.",
    ".hash": "Hash table of the dynamic symbols.",
    ".init": "Code that runs at load.",
    ".init_array": "Addresses of functions that run at load.",
    ".note.gnu.build-id": "The identifier of this build.",
    ".note.gnu.property": "Processor features that the code uses.",
    ".packer.blob": "The import tree, written after the link.",
    ".plt": "Jumps to functions of other libraries.",
    ".rela.dyn": "Relocations: addresses that the loader sets.",
    ".rela.plt": "Relocations of functions of other libraries.",
    ".relr.dyn": "Relocations, packed.",
    ".rodata": "Constants.",
    ".shstrtab": "Names of the sections.",
    ".strtab": "Names of the static symbols.",
    ".symtab": "Static symbols, for debuggers; a load does not use them.",
    ".text": "Machine code.",
}


def role_of(section: Section) -> str:
    """Return the purpose of the bytes of a section."""
    if not section.flags & SHF_ALLOC:
        return "not loaded"
    if section.flags & SHF_EXECINSTR:
        return "code"
    if section.type_name in _LINKING:
        return "linking"
    return "variables" if section.flags & SHF_WRITE else "constants"
