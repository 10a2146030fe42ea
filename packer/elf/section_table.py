"""Section headers, and the static symbols, which only they locate. A load uses neither."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from . import structures as elf
from .structures import SectionHeader, layout_of
from .symbol_table import Decoded, SymbolTable

if TYPE_CHECKING:
    from .dynamic import Dynamic
    from .image import Image

_HEADER = layout_of(SectionHeader)
_MAX_SECTIONS = 1 << 20
_MAX_NAME = 4096


class Section(NamedTuple):
    """One section header, with its name as text."""

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
        """The type as readelf prints it."""
        return elf.SH_TYPES.get(self.type) or f"{self.type:#x}"

    @property
    def file_nbytes(self) -> int:
        """Its size in the file."""
        return 0 if self.type == elf.SHT_NOBITS else self.nbytes

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, with a name for the type."""
        return self._asdict() | {"type": self.type_name}


class SectionTable(Decoded[Section]):
    """The section headers, each decoded when it is read: a library may have 70,000.

    `headers` begin with the null section's; `names` is the string table.
    """

    def __init__(self, headers: bytes = b"", names: bytes = b"") -> None:
        self._headers = headers
        self._names = names

    def __len__(self) -> int:
        return len(self._headers) // _HEADER.size

    def of_type(self, number: int) -> Iterator[Section]:
        """Find the sections of a type; other sections are not decoded."""
        types = memoryview(self._headers).cast("I")[1 :: _HEADER.size // 4].tolist()
        return (self._decode(index) for index, found in enumerate(types) if found == number)

    def decode(self, indices: Iterable[int]) -> Iterator[Section]:
        """Decode the headers at some indices."""
        return map(self._decode, indices)

    def _decode(self, index: int) -> Section:
        name, *fields = _HEADER.unpack_from(self._headers, index * _HEADER.size)
        end = self._names.find(b"\0", name, name + _MAX_NAME)
        text = self._names[name : max(end, name)].decode("utf-8", "backslashreplace")
        return Section(text, *fields)


def read_sections(image: Image) -> SectionTable:
    """Read the section headers; an empty table if the file has none."""
    offset, size = image.header.e_shoff, image.header.e_shentsize
    if not offset:
        return SectionTable()
    if size != _HEADER.size:
        raise image.error(f"ELF header: e_shentsize, expected {_HEADER.size}, found {size}")
    first = SectionTable(bytes(image.slice(offset, size, "section headers")))[0]
    count = image.header.e_shnum or first.nbytes  # gABI: extended numbering
    if count > _MAX_SECTIONS:
        raise image.error(f"{count} section headers, expected at most {_MAX_SECTIONS}")
    headers = bytes(image.slice(offset, count * size, "section headers"))
    names = image.header.e_shstrndx
    return SectionTable(headers, _read_names(image, headers, first, names))


def _read_names(image: Image, headers: bytes, first: Section, index: int) -> bytes:
    table = SectionTable(headers)
    index = first.link if index == elf.SHN_XINDEX else index
    if not 0 < index < len(table):
        return b""  # the sections have no names
    with image.reading():
        return _contents(image, table[index], "section names")
    return b""


def read_static_symbols(image: Image, dynamic: Dynamic, notes: list[str]) -> SymbolTable:
    """Read the static symbol table; if the file has none, return an empty one and add a note."""
    table = next(dynamic.sections.of_type(elf.SHT_SYMTAB), None)
    if table is None:
        what = "no static symbols" if dynamic.sections else "no section headers"
        notes.append(f"stripped: {what}, so only dynamic symbols can be seen")
        return SymbolTable()
    with image.reading():
        if table.link >= len(dynamic.sections):
            raise image.error(
                f"static symbols: string table in section {table.link}, which does not exist"
            )
        entries = _contents(image, table, "static symbols")
        strings = _contents(image, dynamic.sections[table.link], "static symbols")
        return SymbolTable(entries, strings, sections=dynamic.sections)
    return SymbolTable()


def _contents(image: Image, section: Section, where: str) -> bytes:
    if section.flags & elf.SHF_COMPRESSED:  # the size in its header is not trusted
        raise image.error(f"{where}: a compressed section, expected an uncompressed one")
    if section.type == elf.SHT_NOBITS:
        raise image.error(f"{where}: a section of type NOBITS, expected bytes in the file")
    return bytes(image.slice(section.offset, section.nbytes, where))
