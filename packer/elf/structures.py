"""ELF-64 structures, as the gABI names them (System V ABI, chapters 4 and 5): read and written.

The numbers that a load reads are in `runtime.elf`, the others here. Little-endian files only. A
structure is a tuple of its fields; `unpack` and `pack` are inverse. `layout_of` serves readers of
large tables, which take the bytes apart without a tuple for each structure.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from runtime import elf
from runtime.elf import *  # noqa: F403  (structures.PT_LOAD is runtime.elf.PT_LOAD)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..machine import Machine

# ELF header
ELF_MAGIC = b"\x7fELF"
EI_CLASS, EI_DATA, ELFCLASS64, ELFDATA2LSB = 4, 5, 2, 1
# ELF_MAGIC, ELFCLASS64, ELFDATA2LSB, EV_CURRENT, ELFOSABI_NONE
IDENT = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")
ET_REL, ET_DYN = 1, 3
E_TYPES = {2: "a program", ET_DYN: "a shared library or program"}

# Program headers
PT_NOTE, PT_PHDR, PT_GNU_RELRO, PT_GNU_PROPERTY = 4, 6, 0x6474E552, 0x6474E553
# p_type, sh_type, st_info, st_other and st_shndx below are named as readelf prints them.
P_TYPES = {
    **dict(enumerate(("NULL", "LOAD", "DYNAMIC", "INTERP", "NOTE", "SHLIB", "PHDR", "TLS"))),
    **dict(enumerate(("GNU_EH_FRAME", "GNU_STACK", "GNU_RELRO", "GNU_PROPERTY"), 0x6474E550)),
    0x6474E554: "GNU_SFRAME",
}

# Section headers
SHN_UNDEF, SHN_LORESERVE, SHN_XINDEX = 0, 0xFF00, 0xFFFF
SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_HASH = 0, 1, 2, 3, 5
SHT_DYNAMIC, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 6, 7, 8, 11
SHT_RELA, SHT_INIT_ARRAY, SHT_FINI_ARRAY, SHT_PREINIT_ARRAY, SHT_GROUP = 4, 14, 15, 16, 17
SHT_SYMTAB_SHNDX = 18
SHF_WRITE, SHF_ALLOC, SHF_EXECINSTR, SHF_GROUP, SHF_TLS = 1, 2, 4, 0x200, 0x400
SHF_COMPRESSED, SHF_EXCLUDE = 0x800, 0x80000000
SH_TYPES = {
    **dict(enumerate(("NULL", "PROGBITS", "SYMTAB", "STRTAB", "RELA", "HASH", "DYNAMIC", "NOTE"))),
    **dict(enumerate(("NOBITS", "REL", "SHLIB", "DYNSYM"), 8)),
    **dict(enumerate(("INIT_ARRAY", "FINI_ARRAY", "PREINIT_ARRAY", "GROUP"), 14)),
    18: "SYMTAB_SHNDX",
    19: "RELR",
    0x6FFFFFF6: "GNU_HASH",
    0x6FFFFFFD: "VERDEF",
    0x6FFFFFFE: "VERNEED",
    0x6FFFFFFF: "VERSYM",
}

# Symbols
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
STT_NOTYPE, STT_OBJECT, STT_SECTION, STT_FILE = 0, 1, 3, 4
STV_DEFAULT, STV_HIDDEN, STV_PROTECTED = 0, 2, 3
ST_TYPES = {0: "NOTYPE", 1: "OBJECT", 2: "FUNC", 3: "SECTION", 4: "FILE", 5: "COMMON", 6: "TLS"}
ST_TYPES |= {elf.STT_GNU_IFUNC: "IFUNC"}
ST_BINDS = {0: "LOCAL", 1: "GLOBAL", 2: "WEAK", 10: "UNIQUE"}
ST_VISIBILITIES = ("DEFAULT", "INTERNAL", "HIDDEN", "PROTECTED")
ST_SECTIONS = {SHN_UNDEF: "UND", 0xFFF1: "ABS", 0xFFF2: "COM"}
VERSYM_HIDDEN, VER_FLG_BASE = 0x8000, 1  # LSB, Symbol Version Table

# Dynamic section
DT_SYMENT = 11
DT_BIND_NOW, DT_FLAGS_1, DF_BIND_NOW, DF_1_NOW = 24, 0x6FFFFFFB, 8, 1
DT_VERSYM, DT_VERNEED, DT_VERDEF = 0x6FFFFFF0, 0x6FFFFFFE, 0x6FFFFFFC
DT_AUDIT, DT_DEPAUDIT, DT_FILTER, DT_AUXILIARY = 0x6FFFFEFC, 0x6FFFFEFB, 0x7FFFFFFF, 0x7FFFFFFD

# Notes (Linux Extensions to gABI, Program Property)
NT_VERSION, NT_GNU_PROPERTY_TYPE_0 = 1, 5


class Header(NamedTuple):
    """Elf64_Ehdr."""

    e_ident: bytes
    e_type: int
    e_machine: int
    e_version: int
    e_entry: int
    e_phoff: int
    e_shoff: int
    e_flags: int
    e_ehsize: int
    e_phentsize: int
    e_phnum: int
    e_shentsize: int
    e_shnum: int
    e_shstrndx: int


class ProgramHeader(NamedTuple):
    """Elf64_Phdr."""

    p_type: int
    p_flags: int
    p_offset: int
    p_vaddr: int
    p_paddr: int
    p_filesz: int
    p_memsz: int
    p_align: int


class SectionHeader(NamedTuple):
    """Elf64_Shdr."""

    sh_name: int = 0
    sh_type: int = SHT_NULL
    sh_flags: int = 0
    sh_addr: int = 0
    sh_offset: int = 0
    sh_size: int = 0
    sh_link: int = 0
    sh_info: int = 0
    sh_addralign: int = 0
    sh_entsize: int = 0


class SymbolEntry(NamedTuple):
    """Elf64_Sym."""

    st_name: int = 0
    st_info: int = 0
    st_other: int = 0
    st_shndx: int = SHN_UNDEF
    st_value: int = 0
    st_size: int = 0


class DynamicTag(NamedTuple):
    """Elf64_Dyn."""

    d_tag: int
    d_val: int


# Without a tuple: Elf64_Rela (r_offset, r_info, r_addend); Elf64_Verneed (vn_version, vn_cnt,
# vn_file, vn_aux, vn_next), Elf64_Vernaux (vna_hash, vna_flags, vna_other, vna_name, vna_next),
# Elf64_Verdef (vd_version, vd_flags, vd_ndx, vd_cnt, vd_hash, vd_aux, vd_next), Elf64_Verdaux
# (vda_name, vda_next); Elf64_Nhdr (n_namesz, n_descsz,
# n_type), which the name and the description follow, each padded; and a property of a
# NT_GNU_PROPERTY_TYPE_0 note (pr_type, pr_datasz), which its data follow, padded to 8 bytes.
VERNEED, VERNAUX = Struct("<HHIII"), Struct("<IHHII")
VERDEF, VERDAUX = Struct("<HHHHIII"), Struct("<II")
NOTE, PROPERTY = Struct("<III"), Struct("<II")

Structure = TypeVar("Structure", Header, ProgramHeader, SectionHeader, SymbolEntry, DynamicTag)

_LAYOUTS: dict[type, Struct] = {
    Header: elf.HEADER,
    ProgramHeader: elf.PROGRAM_HEADER,
    SectionHeader: elf.SECTION_HEADER,
    SymbolEntry: elf.SYMBOL,
    DynamicTag: elf.TAG,
}


def layout_of(kind: type) -> Struct:
    """Return how a structure is stored."""
    return _LAYOUTS[kind]


def size_of(kind: type) -> int:
    """Return the size of a structure in bytes."""
    return _LAYOUTS[kind].size


def unpack(kind: type[Structure], data: bytes) -> list[Structure]:
    """Read a table of structures; raises struct.error if the last one is cut short."""
    return [kind(*fields) for fields in _LAYOUTS[kind].iter_unpack(data)]


def pack(entries: Iterable[Structure]) -> bytes:
    """Write a table of structures."""
    return b"".join(_LAYOUTS[type(entry)].pack(*entry) for entry in entries)


def make_header(
    e_type: int, machine: Machine, *, num_programs: int, shoff: int, num_sections: int
) -> Header:
    """Fill an ELF header: program headers follow it, the last section holds section names."""
    return Header(
        e_ident=IDENT,
        e_type=e_type,
        e_machine=machine.e_machine,
        e_version=1,
        e_entry=0,
        e_phoff=size_of(Header) if num_programs else 0,
        e_shoff=shoff,
        e_flags=machine.e_flags,
        e_ehsize=size_of(Header),
        e_phentsize=size_of(ProgramHeader) if num_programs else 0,
        e_phnum=num_programs,
        e_shentsize=size_of(SectionHeader),
        e_shnum=num_sections,
        e_shstrndx=num_sections - 1,
    )


def symbol_info(bind: int, symbol_type: int) -> int:
    """ELF64_ST_INFO."""
    return bind << 4 | symbol_type


class Strings:
    """A string table under construction; `add` returns the offset of each string."""

    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, text: str) -> int:
        """Append a string and return its offset."""
        offset = len(self.data)
        self.data += text.encode() + b"\0"
        return offset


def align_up(value: int, alignment: int) -> int:
    """Round a value up to a multiple of an alignment."""
    return -(-value // alignment) * alignment
