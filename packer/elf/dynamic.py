"""Dynamic: the dynamic section and the tables that it points to."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import compress, islice, repeat
from struct import Struct

from runtime.error import LibraryLoadError

from . import structures as elf
from .image import Image, map_file, valid_path
from .linkage import Hardening, Linkage, VersionNeed, version_numbers
from .notes import read_branch_protection
from .section_table import SectionTable, read_sections
from .structures import SymbolEntry, size_of
from .symbol_table import SymbolTable

_MAX_VERSIONS = 32_768  # their numbers have 15 bits
_GLIBC = re.compile(r"GLIBC_(\d{1,4}(?:\.\d{1,4}){1,2})")


class Dynamic:
    """The contents of the PT_DYNAMIC segment of an image.

    `symbols` are the dynamic ones, `sections` the section headers, which a load does not use.
    `defined_versions` are the symbol versions that the file defines, such as ``"GLIBC_2.34"``.
    """

    def __init__(self, image: Image) -> None:
        self.image = image
        self._versions_left = _MAX_VERSIONS
        self._version_needs: tuple[VersionNeed, ...] = ()
        self.defined_versions: tuple[str, ...] = ()
        self.sections = SectionTable()
        self.symbols = SymbolTable()
        with image.reading():
            image.read_dynamic()
        with image.reading():
            self.sections = read_sections(image)
        with image.reading():
            self.symbols = self._read_symbols()

    def relocations(
        self, *, places: Collection[int] | None = None, number: int | None = None
    ) -> Iterator[tuple[int, int, int]]:
        """Iterate over the relocations with an addend: place, info, addend.

        By default all of them, else only those at some addresses, or of one type.
        """
        for table in self.image.relocation_tables():
            found: Iterable[bool] = repeat(True)
            if places is not None:
                found = map(places.__contains__, table.cast("Q")[::3].tolist())
            elif number is not None:
                found = map(number.__eq__, table.cast("I")[2::6].tolist())
            for index in compress(range(len(table) // elf.RELOCATION.size), found):
                yield elf.RELOCATION.unpack_from(table, index * elf.RELOCATION.size)

    def linkage(self) -> Linkage:
        """Return which other files the library requires."""
        return Linkage(
            soname=next(iter(self._texts(elf.DT_SONAME)), None),
            needed=self._texts(elf.DT_NEEDED),
            rpath=self._texts(elf.DT_RPATH),
            runpath=self._texts(elf.DT_RUNPATH),
            audit=self._texts(elf.DT_AUDIT, elf.DT_DEPAUDIT),
            filter=self._texts(elf.DT_FILTER, elf.DT_AUXILIARY),
            version_needs=self._version_needs,
            glibc=_newest_glibc(self._version_needs),
        )

    def hardening(self) -> Hardening:
        """Return how the linker hardened the library."""
        image, segments = self.image, self.image.segments
        flags, flags_1 = image.value(elf.DT_FLAGS), image.value(elf.DT_FLAGS_1)
        now = image.values(elf.DT_BIND_NOW) or flags & elf.DF_BIND_NOW or flags_1 & elf.DF_1_NOW
        relro = any(s.type == elf.PT_GNU_RELRO for s in segments)
        stack = [s.flags for s in segments if s.type == elf.PT_GNU_STACK]
        loads = [s.flags for s in segments if s.type == elf.PT_LOAD]
        return Hardening(
            relro="none" if not relro else "full" if now else "partial",
            # Without PT_GNU_STACK the stack is executable.
            nx=bool(stack) and not any(f & elf.PF_X for f in stack),
            rwx=any(f & elf.PF_W and f & elf.PF_X for f in loads),
            textrel=bool(image.values(elf.DT_TEXTREL) or flags & elf.DF_TEXTREL),
            branch_protection=read_branch_protection(image),
        )

    def _texts(self, *tags: int) -> tuple[str, ...]:
        return tuple(map(self._text, self.image.values(*tags)))

    def _text(self, offset: int) -> str:
        with self.image.reading():
            return self.image.text(offset)
        return ""

    # ---- symbols and their versions

    def _read_symbols(self) -> SymbolTable:
        address = self.image.value(elf.DT_SYMTAB)
        if not address:
            return SymbolTable()
        strings = bytes(self.image.table(elf.DT_STRTAB, elf.DT_STRSZ, "DT_STRTAB"))
        count = self._count_symbols(address)
        entries = bytes(self.image.at(address, count * size_of(SymbolEntry), "DT_SYMTAB"))
        versions, names = b"", dict[int, str]()
        with self.image.reading():
            if at := self.image.value(elf.DT_VERSYM):
                versions = bytes(self.image.at(at, 2 * count, "DT_VERSYM"))
                names = dict(self._read_version_names())
        return SymbolTable(entries, strings, versions, names)

    def _count_symbols(self, address: int) -> int:
        """Count the symbols, with symbols that only the section header knows."""
        sections = self.sections.of_type(elf.SHT_DYNSYM)
        nbytes = next((s.nbytes for s in sections if s.address == address), 0)
        return max(self.image.num_symbols(), nbytes // size_of(SymbolEntry))

    def _read_version_names(self) -> Iterator[tuple[int, str]]:
        """Iterate over the numbers and names of needed and defined versions."""
        needs: list[VersionNeed] = []
        for at, (_, _, file, aux, _) in self._chain(elf.VERNEED, self.image.value(elf.DT_VERNEED)):
            names: list[str] = []
            for _, (_, _, number, name, _) in self._chain(elf.VERNAUX, at + aux):
                names.append(self._text(name))
                yield number & ~elf.VERSYM_HIDDEN, names[-1]
            needs.append(VersionNeed(self._text(file), tuple(names)))
        self._version_needs = tuple(needs)
        defined: list[str] = []
        for at, fields in self._chain(elf.VERDEF, self.image.value(elf.DT_VERDEF)):
            _, flags, number, _, _, aux, _ = fields
            if not flags & elf.VER_FLG_BASE:
                for _, (name, _) in islice(self._chain(elf.VERDAUX, at + aux), 1):
                    defined.append(self._text(name))
                    yield number & ~elf.VERSYM_HIDDEN, defined[-1]
        self.defined_versions = tuple(defined)

    def _chain(self, layout: Struct, address: int) -> Iterator[tuple[int, tuple[int, ...]]]:
        """Follow entries, whose last field is the distance to the next."""
        while address and self._versions_left:
            self._versions_left -= 1
            fields = layout.unpack(self.image.at(address, layout.size, "symbol versions"))
            yield address, fields
            address = address + fields[-1] if fields[-1] else 0


def read_dynamic(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> Dynamic:
    """Read the dynamic section of a library or a program, as far as possible."""
    name = os.fspath(path)
    data = map_file(name)
    if bytes(data[:6]) != elf.MAGIC:
        text = f"{valid_path(name)}: expected a 64-bit little-endian ELF file"
        raise LibraryLoadError(text, path=os.fsdecode(name), reason="not-elf")
    return Dynamic(Image(data, valid_path(name), []))


def _newest_glibc(needs: Collection[VersionNeed]) -> str | None:
    """Return the oldest glibc that can load a library: the newest that it names."""
    names = {name for need in needs for name in need.versions}
    found = [match[1] for name in names if (match := _GLIBC.fullmatch(name))]
    return max(found, key=version_numbers, default=None)
