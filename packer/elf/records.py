"""ELF-64 records, as the gABI names them ("System V ABI, chapters 4 and 5"): read and written.

Little-endian files only. A record is a tuple of its fields; `unpack` and `pack` are each other's
mirror.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..target import Machine

ET_REL, ET_DYN = 1, 3
PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_PHDR = 1, 2, 4, 6
PT_GNU_STACK = 0x6474E551
PF_W, PF_R = 2, 4
SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_HASH = 0, 1, 2, 3, 5
SHT_DYNAMIC, SHT_NOTE, SHT_DYNSYM = 6, 7, 11
SHF_WRITE, SHF_ALLOC = 1, 2
STB_GLOBAL, STT_OBJECT = 1, 1
DT_NULL, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SYMENT = 0, 4, 5, 6, 10, 11

# \177ELF, ELFCLASS64, ELFDATA2LSB, EV_CURRENT, ELFOSABI_NONE
IDENT = b"\x7fELF\x02\x01\x01".ljust(16, b"\0")


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


class Symbol(NamedTuple):
    """Elf64_Sym."""

    st_name: int = 0
    st_info: int = 0
    st_other: int = 0
    st_shndx: int = 0
    st_value: int = 0
    st_size: int = 0


class DynamicEntry(NamedTuple):
    """Elf64_Dyn."""

    d_tag: int
    d_val: int


Record = TypeVar("Record", Header, ProgramHeader, SectionHeader, Symbol, DynamicEntry)

_LAYOUTS: dict[type, Struct] = {
    Header: Struct("<16sHHIQQQIHHHHHH"),
    ProgramHeader: Struct("<IIQQQQQQ"),
    SectionHeader: Struct("<IIQQQQIIQQ"),
    Symbol: Struct("<IBBHQQ"),
    DynamicEntry: Struct("<QQ"),
}


def size_of(kind: type) -> int:
    """The bytes of one record."""
    return _LAYOUTS[kind].size


def unpack(kind: type[Record], data: bytes) -> list[Record]:
    """Read a table of records.

    Raises
    ------
    struct.error
        The last one is cut short.
    """
    return [kind(*fields) for fields in _LAYOUTS[kind].iter_unpack(data)]


def pack(records: Iterable[Record]) -> bytes:
    """Write a table of records."""
    return b"".join(_LAYOUTS[type(record)].pack(*record) for record in records)


def make_header(
    e_type: int, machine: Machine, *, num_programs: int, shoff: int, num_sections: int
) -> Header:
    """Fill an ELF header: program headers right behind it, section names in the last section."""
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


def symbol_info(bind: int, kind: int) -> int:
    """ELF64_ST_INFO."""
    return bind << 4 | kind


class Strings:
    """A string table under construction; the offset of each string is known at once."""

    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, text: str) -> int:
        """Add a string, and give its offset."""
        offset = len(self.data)
        self.data += text.encode() + b"\0"
        return offset


def align_up(value: int, alignment: int) -> int:
    """The next multiple of an alignment."""
    return -(-value // alignment) * alignment
