"""Section headers, and the static symbols that only they lead to. A load uses neither."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from .symbols import SymbolTable

if TYPE_CHECKING:
    from .dynamic import Dynamic
    from .image import Image

# Elf64_Shdr (gABI); a plain struct, since a library may have 70,000 of them.
_HEADER = Struct("<IIQQQQIIQQ")
SHT_SYMTAB, SHT_NOBITS, SHT_DYNSYM = 2, 8, 11
_SHF_COMPRESSED = 0x800
_MAX_SECTIONS = 1 << 20


class Section(NamedTuple):
    """One section header."""

    name: int
    type: int
    flags: int
    address: int
    offset: int
    nbytes: int
    link: int
    info: int
    alignment: int
    entry_nbytes: int


def read_sections(image: Image) -> list[Section]:
    """Read the section headers; none where the file has none.

    Raises
    ------
    LibraryLoadError
        They are not what the ELF header says.
    """
    offset, size = image.header.e_shoff, image.header.e_shentsize
    if not offset:
        return []
    if size != _HEADER.size:
        raise image.error(f"ELF header: e_shentsize, expected {_HEADER.size}, found {size}")
    first = Section(*_HEADER.unpack(image.slice(offset, size, "section headers")))
    count = image.header.e_shnum or first.nbytes  # gABI: extended numbering
    if count > _MAX_SECTIONS:
        raise image.error(f"{count} section headers, expected at most {_MAX_SECTIONS}")
    table = image.slice(offset, count * size, "section headers")
    return [Section(*fields) for fields in _HEADER.iter_unpack(table)]


def read_static_symbols(image: Image, dynamic: Dynamic, notes: list[str]) -> SymbolTable:
    """Read the static symbol table; an empty one, and a note, where the file has none."""
    table = next((s for s in dynamic.sections if s.type == SHT_SYMTAB), None)
    if table is None:
        what = "no static symbols" if dynamic.sections else "no section headers"
        notes.append(f"stripped: {what}, so only dynamic symbols can be seen")
        return SymbolTable()
    with image.reading():
        if table.link >= len(dynamic.sections):
            raise image.error(
                f"static symbols: strings in section {table.link}, which is not there"
            )
        strings = dynamic.sections[table.link]
        return SymbolTable(_contents(image, table), _contents(image, strings))
    return SymbolTable()


def _contents(image: Image, section: Section) -> bytes:
    if section.flags & _SHF_COMPRESSED:  # its header's word on its size is never taken
        raise image.error("static symbols: a compressed section, which is never decompressed")
    if section.type == SHT_NOBITS:
        raise image.error("static symbols: a section without bits, expected bytes in the file")
    return bytes(image.slice(section.offset, section.nbytes, "static symbols"))
