"""Relocatable ELF-64 objects: the symbols that they define, and how to rename them.

An object may be a part of another file, an archive or a tar, and is read in place. Offsets and
counts are checked before they are used.
"""

from __future__ import annotations

import contextlib
import mmap
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from runtime.error import ExportError

from ..files.text import shown_path
from . import structures as elf
from .structures import Header, SectionHeader, SymbolEntry, pack, size_of, unpack

# A name may be the end of another one, so all names together may be longer than the table.
_MAX_SHARING = 16


class Definition(NamedTuple):
    """Where an object defines a global symbol."""

    # The offset of its bytes in the file; None if it has none there (.bss, a common symbol).
    offset: int | None
    nbytes: int
    is_exported: bool  # True if it stays visible in a shared library


class ObjectFile:
    """One relocatable object: the whole file, or a part of it.

    `name` is for messages, `definitions` has its global symbols, including weak ones. Raises
    ExportError if the file is not such an object, or damaged.
    """

    def __init__(
        self, path: Path, name: str | None = None, offset: int = 0, nbytes: int | None = None
    ) -> None:
        self.path = path
        self.name = name or shown_path(path)
        with open(path, "rb") as file, reporting_object(path, self.name):
            tables = _read(file, offset, nbytes)
            self.definitions = dict(tables.definitions(offset))
        self.machine = tables.header.e_machine


def rename_symbols(path: Path, rename: Callable[[str, bool], str]) -> None:
    """Rename symbols of an object, in place; raises ExportError if it is not a relocatable object.

    ``rename(name, is_defined)`` returns the new name of a global symbol. The new string table is
    appended to the file; nothing moves.
    """
    with open(path, "r+b") as file, reporting_object(path, shown_path(path)):
        tables = _read(file, 0, None)
        strings = bytearray(tables.strings)
        for index, symbol in enumerate(tables.symbols):
            old = tables.name_of(symbol)
            new = rename(old, symbol.st_shndx != elf.SHN_UNDEF) if is_global(symbol) else old
            if new != old:
                file.seek(tables.symtab.sh_offset + index * size_of(SymbolEntry))
                file.write(pack([symbol._replace(st_name=len(strings))]))
                strings += new.encode("utf-8", "surrogateescape") + b"\0"
        end = file.seek(0, 2)
        file.write(strings)
        section = tables.sections[tables.symtab.sh_link]
        file.seek(tables.header.e_shoff + tables.symtab.sh_link * size_of(SectionHeader))
        file.write(pack([section._replace(sh_offset=end, sh_size=len(strings))]))


def contains(path: Path, *names: bytes) -> bool:
    """Return True if a file contains one of these bytes, as its string table contains names."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        return any(mapped.find(name) >= 0 for name in names)


def _read(file: IO[bytes], offset: int, nbytes: int | None) -> ObjectTables:
    with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        end = len(mapped) if nbytes is None else offset + nbytes
        with memoryview(mapped) as view, view[offset:end] as data:
            return ObjectTables(data)


@contextlib.contextmanager
def reporting_object(path: Path, name: str) -> Iterator[None]:
    """Add the name of the object to an error about a field."""
    try:
        yield
    except (ValueError, IndexError, struct.error) as error:
        text = f"{name}: {error}, expected a relocatable ELF-64 object, little-endian"
        raise ExportError(text, path=str(path)) from error


def is_global(symbol: SymbolEntry) -> bool:
    """Return True for a symbol that other objects see: also an undefined or weak one."""
    kind = symbol.st_info & 15
    return symbol.st_info >> 4 != elf.STB_LOCAL and kind not in (elf.STT_SECTION, elf.STT_FILE)


class ObjectTables:
    """The header, sections and symbols of an object."""

    def __init__(self, data: memoryview) -> None:
        if data[:6] != elf.IDENT[:6]:
            raise ValueError(f"begins with {bytes(data[:6])!r}")
        self.header = unpack(Header, bytes(data[: size_of(Header)]))[0]
        if self.header.e_type != elf.ET_REL:
            what = elf.E_TYPES.get(self.header.e_type, "an ELF file")
            raise ValueError(f"{what} (e_type {self.header.e_type})")
        self.sections = self._read_sections(data)
        tables = [section for section in self.sections if section.sh_type == elf.SHT_SYMTAB]
        self.symtab = tables[0] if tables else SectionHeader()
        self.strings = _part(data, self.sections[self.symtab.sh_link]) if tables else b"\0"
        self.symbols = unpack(SymbolEntry, _part(data, self.symtab)) if tables else []

    def _read_sections(self, data: memoryview) -> list[SectionHeader]:
        start, size = self.header.e_shoff, size_of(SectionHeader)
        if self.header.e_shentsize != size:
            raise ValueError(f"e_shentsize {self.header.e_shentsize}")
        first = unpack(SectionHeader, bytes(data[start : start + size]))[0]
        count = self.header.e_shnum or first.sh_size  # gABI: more than 0xff00 are counted there
        if count > (len(data) - start) // size:
            raise ValueError(f"{count} sections at {start:#x}")
        return unpack(SectionHeader, bytes(data[start : start + count * size]))

    def name_of(self, symbol: SymbolEntry) -> str:
        return string_at(self.strings, symbol.st_name)

    def definitions(self, base: int) -> Iterator[tuple[str, Definition]]:
        left = _MAX_SHARING * len(self.strings)
        for symbol in self.symbols:
            if is_global(symbol) and symbol.st_shndx != elf.SHN_UNDEF:
                name = self.name_of(symbol)
                left -= len(name)
                if left < 0:
                    raise ValueError(
                        f"names that share more than {_MAX_SHARING} times the string table"
                    )
                yield name, self._definition(symbol, base)

    def _definition(self, symbol: SymbolEntry, base: int) -> Definition:
        is_exported = symbol.st_other & 3 in (elf.STV_DEFAULT, elf.STV_PROTECTED)
        return Definition(self._offset_of(symbol, base), symbol.st_size, is_exported)

    def _offset_of(self, symbol: SymbolEntry, base: int) -> int | None:
        if symbol.st_shndx >= min(elf.SHN_LORESERVE, len(self.sections)):
            return None
        section = self.sections[symbol.st_shndx]
        is_inside = symbol.st_value + symbol.st_size <= section.sh_size
        if section.sh_type == elf.SHT_NOBITS or not is_inside:
            return None
        return base + section.sh_offset + symbol.st_value


def _part(data: memoryview, section: SectionHeader) -> bytes:
    start, end = section.sh_offset, section.sh_offset + section.sh_size
    if end > len(data):
        raise ValueError(f"a section at {start:#x} of {section.sh_size} bytes")
    return bytes(data[start:end])


def string_at(strings: bytes, offset: int) -> str:
    """Return the name at an offset of a string table; raises ValueError if a NUL ends none."""
    end = strings.find(b"\0", offset)
    if end < 0:
        raise ValueError(f"a name at {offset:#x} of a string table of {len(strings)} bytes")
    return strings[offset:end].decode("utf-8", "surrogateescape")
