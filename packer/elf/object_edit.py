"""EditedObject: a relocatable ELF-64 object whose symbols and relocations are changed in memory.

Sections keep their places. The symbol table and the table of names are written again, at the end of
the file. Symbols keep their order, and new ones follow them, so relocations stay valid.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from . import structures as elf
from .archive import MAGIC, read_archive
from .object_file import ObjectTables, is_global, reporting_object, string_at
from .structures import SectionHeader, SymbolEntry, align_up, pack, size_of

_CODE = (elf.STT_FUNC, elf.STT_GNU_IFUNC)


class Relocation(NamedTuple):
    """One relocation with an addend."""

    at: int  # the offset of its entry in the file
    section: int  # the section that it changes, and `offset` the place in it
    offset: int
    symbol: int  # the index of the symbol


class EditedObject:
    """One relocatable object, or one member of an archive, whose place in the file is given.

    Local `symbols` come first; `names` has the name of each. Raises ExportError, which contains
    `name`, if it is not such an object, or damaged.
    """

    def __init__(self, path: Path, name: str, offset: int = 0, nbytes: int | None = None) -> None:
        self._path, self._name = path, name
        data = path.read_bytes()
        self.data = bytearray(data[offset:] if nbytes is None else data[offset : offset + nbytes])
        with reporting_object(path, name):
            tables = ObjectTables(memoryview(bytes(self.data)))
            self.sections, self.symbols = tables.sections, tables.symbols
            self._header = tables.header
            self._symtab = next(
                (i for i, s in enumerate(self.sections) if s.sh_type == elf.SHT_SYMTAB), 0
            )
            if any(s.sh_type == elf.SHT_SYMTAB_SHNDX for s in self.sections):
                raise ValueError(f"{len(self.sections)} sections, expected less than 65280")
            self._strings = tables.strings
            self.names = [tables.name_of(symbol) for symbol in self.symbols]
            self._old_names = {
                symbol.st_name: name for symbol, name in zip(self.symbols, self.names, strict=True)
            } | {0: ""}
            self.section_names = list(self._section_names())

    def _section_names(self) -> Iterator[str]:
        index = self._header.e_shstrndx
        section = self.sections[index]
        strings = bytes(self.data[section.sh_offset : section.sh_offset + section.sh_size])
        for one in self.sections:
            yield string_at(strings, one.sh_name)

    def section_of(self, symbol: SymbolEntry) -> SectionHeader | None:
        """Return the section that defines a symbol; None if none does (COMMON, ABS, UND)."""
        is_inside = 0 < symbol.st_shndx < min(len(self.sections), elf.SHN_LORESERVE)
        return self.sections[symbol.st_shndx] if is_inside else None

    def is_code(self, symbol: SymbolEntry) -> bool:
        """Return True if a defined symbol is a function."""
        kind, section = symbol.st_info & 15, self.section_of(symbol)
        is_label = kind == elf.STT_NOTYPE and section is not None
        return kind in _CODE or bool(is_label and section and section.sh_flags & elf.SHF_EXECINSTR)

    def is_in_group(self, symbol: SymbolEntry) -> bool:
        """Return True if a COMDAT group contains the definition of a symbol."""
        section = self.section_of(symbol)
        return section is not None and bool(section.sh_flags & elf.SHF_GROUP)

    def globals(self) -> Iterator[tuple[int, str, SymbolEntry]]:
        """Iterate over the global symbols, undefined and weak ones included."""
        for index, symbol in enumerate(self.symbols):
            if is_global(symbol):
                yield index, self.names[index], symbol

    def relocations(self) -> Iterator[Relocation]:
        """Iterate over the relocations of allocated sections."""
        for section in self.sections:
            if section.sh_type != elf.SHT_RELA or section.sh_info >= len(self.sections):
                continue
            if self.sections[section.sh_info].sh_flags & elf.SHF_ALLOC:
                yield from self._relocations_of(section)

    def _relocations_of(self, section: SectionHeader) -> Iterator[Relocation]:
        end = section.sh_offset + section.sh_size
        with reporting_object(self._path, self._name):
            for at in range(section.sh_offset, end, elf.RELOCATION.size):
                place, info, _ = elf.RELOCATION.unpack_from(self.data, at)
                if info >> 32 >= len(self.symbols):
                    raise ValueError(f"a relocation at {at:#x} of symbol {info >> 32}")
                yield Relocation(at, section.sh_info, place, info >> 32)

    def retarget(self, relocation: Relocation, symbol: int) -> None:
        """Let a relocation refer to another symbol; its type and addend stay."""
        place, info, addend = elf.RELOCATION.unpack_from(self.data, relocation.at)
        info = symbol << 32 | info & 0xFFFFFFFF
        elf.RELOCATION.pack_into(self.data, relocation.at, place, info, addend)

    def add_undefined(self, name: str) -> int:
        """Add an undefined symbol, and return its index."""
        info = elf.symbol_info(elf.STB_GLOBAL, elf.STT_NOTYPE)
        self.symbols.append(SymbolEntry(st_info=info))
        self.names.append(name)
        return len(self.symbols) - 1

    def dissolve_groups(self, *, keeps_data: bool) -> None:
        """Make the members of COMDAT groups plain sections: no linker drops them then.

        Groups of debug information stay. With `keeps_data` all groups without code stay: a linker
        finds equal ones of other objects.
        """
        for index, section in enumerate(self.sections):
            if section.sh_type != elf.SHT_GROUP:
                continue
            members = self._members(section)
            flags = [self.sections[member].sh_flags for member in members]
            dissolved = elf.SHF_EXECINSTR if keeps_data else elf.SHF_ALLOC
            if not any(flag & dissolved for flag in flags):
                continue
            for member, flag in zip(members, flags, strict=True):
                plain = self.sections[member]._replace(sh_flags=flag & ~elf.SHF_GROUP)
                self.sections[member] = plain
            # From here on a link leaves the section of the group out.
            self.sections[index] = section._replace(
                sh_type=elf.SHT_PROGBITS, sh_flags=elf.SHF_EXCLUDE, sh_link=0, sh_info=0
            )

    def _members(self, group: SectionHeader) -> list[int]:
        """Return the sections of a group; its first word is flags."""
        data = self.data[group.sh_offset : group.sh_offset + group.sh_size]
        words = memoryview(data[: len(data) // 4 * 4]).cast("I").tolist()
        return [member for member in words[1:] if member < len(self.sections)]

    def write(self, path: Path) -> None:
        """Write the object with its new symbols."""
        strings, entries = bytearray(self._strings), []
        for name, symbol in zip(self.names, self.symbols, strict=True):
            if name != self._old_names.get(symbol.st_name):
                symbol = symbol._replace(st_name=len(strings))
                strings += name.encode("utf-8", "surrogateescape") + b"\0"
            entries.append(symbol)
        start = align_up(len(self.data), 8)
        data = self.data.ljust(start, b"\0") + pack(entries)
        names = {"sh_offset": len(data), "sh_size": len(strings)}
        moved = {"sh_offset": start, "sh_size": len(entries) * size_of(SymbolEntry)}
        sections = list(self.sections)
        link = sections[self._symtab].sh_link
        sections[self._symtab] = sections[self._symtab]._replace(**moved)
        sections[link] = sections[link]._replace(**names)
        place = self._header.e_shoff
        data[place : place + len(sections) * size_of(SectionHeader)] = pack(sections)
        path.write_bytes(data + strings)


def objects_of(path: Path) -> Iterator[EditedObject]:
    """Yield the objects of a file; none of a thin archive, IR or assembly."""
    with path.open("rb") as file:
        head = file.read(len(MAGIC))
    if head.startswith(elf.ELF_MAGIC):
        yield EditedObject(path, path.name)
    elif head == MAGIC:
        for member in read_archive(path):
            yield EditedObject(path, f"{path.name}({member.name})", member.offset, member.nbytes)
