"""Section headers, and the static symbols that only they lead to. A load uses neither."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple, overload

from .symbol_table import SymbolTable

if TYPE_CHECKING:
    from .dynamic import Dynamic
    from .image import Image

# Elf64_Shdr (gABI); a plain struct, since a library may have 70,000 of them.
_HEADER = Struct("<IIQQQQIIQQ")
SHT_SYMTAB, SHT_NOBITS, SHT_DYNSYM = 2, 8, 11
_SHN_XINDEX = 0xFFFF
_SHF_COMPRESSED = 0x800
_MAX_SECTIONS = 1 << 20
_MAX_NAME = 4096

# sh_type, as readelf writes it.
_TYPES = {
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


class Section(NamedTuple):
    """One section header, its name as text."""

    name: str
    type: int
    flags: int
    address: int
    offset: int
    nbytes: int
    link: int
    info: int
    alignment: int
    entry_nbytes: int

    @property
    def type_name(self) -> str:
        """As readelf writes it."""
        return _TYPES.get(self.type) or f"{self.type:#x}"

    @property
    def file_nbytes(self) -> int:
        """What it takes of the file."""
        return 0 if self.type == SHT_NOBITS else self.nbytes

    def to_dict(self) -> dict[str, Any]:
        """Return it with a name for the type's number."""
        return self._asdict() | {"type": self.type_name}


class SectionTable(Sequence[Section]):
    """The section headers, decoded one at a time when they are asked for.

    Parameters
    ----------
    entries : bytes
        The headers, the null section's first.
    names : bytes
        The string table of their names.
    """

    def __init__(self, entries: bytes = b"", names: bytes = b"") -> None:
        self._entries = entries
        self._names = names

    def __len__(self) -> int:
        return len(self._entries) // _HEADER.size

    @overload
    def __getitem__(self, index: int) -> Section: ...
    @overload
    def __getitem__(self, index: slice) -> list[Section]: ...
    def __getitem__(self, index: int | slice) -> Section | list[Section]:
        if isinstance(index, slice):
            return [self._decode(i) for i in range(len(self))[index]]
        return self._decode(range(len(self))[index])

    def of_type(self, number: int) -> Iterator[Section]:
        """Find the sections of a type; others are not decoded."""
        types = memoryview(self._entries).cast("I")[1 :: _HEADER.size // 4].tolist()
        return (self._decode(index) for index, found in enumerate(types) if found == number)

    @property
    def names(self) -> Sequence[str]:
        """Their names alone."""
        return _Names(self)

    def _decode(self, index: int) -> Section:
        name, *fields = _HEADER.unpack_from(self._entries, index * _HEADER.size)
        end = self._names.find(b"\0", name, name + _MAX_NAME)
        text = self._names[name : max(end, name)].decode("utf-8", "backslashreplace")
        return Section(text, *fields)


class _Names(Sequence[str]):
    def __init__(self, table: SectionTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [section.name for section in self._table[index]]
        return self._table[index].name


def read_sections(image: Image) -> SectionTable:
    """Read the section headers; none where the file has none.

    Raises
    ------
    LibraryLoadError
        They are not what the ELF header says.
    """
    offset, size = image.header.e_shoff, image.header.e_shentsize
    if not offset:
        return SectionTable()
    if size != _HEADER.size:
        raise image.error(f"ELF header: e_shentsize, expected {_HEADER.size}, found {size}")
    first = SectionTable(bytes(image.slice(offset, size, "section headers")))[0]
    count = image.header.e_shnum or first.nbytes  # gABI: extended numbering
    if count > _MAX_SECTIONS:
        raise image.error(f"{count} section headers, expected at most {_MAX_SECTIONS}")
    entries = bytes(image.slice(offset, count * size, "section headers"))
    names = image.header.e_shstrndx
    return SectionTable(entries, _read_names(image, entries, first, names))


def _read_names(image: Image, entries: bytes, first: Section, index: int) -> bytes:
    table = SectionTable(entries)
    index = first.link if index == _SHN_XINDEX else index
    if not 0 < index < len(table):
        return b""  # they have no names
    with image.reading():
        return _contents(image, table[index], "section names")
    return b""


def read_static_symbols(image: Image, dynamic: Dynamic, notes: list[str]) -> SymbolTable:
    """Read the static symbol table; an empty one, and a note, where the file has none."""
    table = next(dynamic.sections.of_type(SHT_SYMTAB), None)
    if table is None:
        what = "no static symbols" if dynamic.sections else "no section headers"
        notes.append(f"stripped: {what}, so only dynamic symbols can be seen")
        return SymbolTable()
    with image.reading():
        if table.link >= len(dynamic.sections):
            raise image.error(
                f"static symbols: strings in section {table.link}, which is not there"
            )
        entries = _contents(image, table, "static symbols")
        strings = _contents(image, dynamic.sections[table.link], "static symbols")
        return SymbolTable(entries, strings, section_names=dynamic.sections.names)
    return SymbolTable()


def _contents(image: Image, section: Section, where: str) -> bytes:
    if section.flags & _SHF_COMPRESSED:  # its header's word on its size is never taken
        raise image.error(f"{where}: a compressed section, which is never decompressed")
    if section.type == SHT_NOBITS:
        raise image.error(f"{where}: a section without bits, expected bytes in the file")
    return bytes(image.slice(section.offset, section.nbytes, where))
