"""Dynamic: the dynamic section and the tables that it points to."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import compress, repeat
from struct import Struct
from typing import Any

from runtime.error import LibraryLoadError

from . import structures as elf
from .image import Image, map_file, valid_path
from .linkage import Hardening, Linkage, VersionNeed, version_numbers
from .notes import read_branch_protection
from .section_table import SectionTable, read_sections
from .structures import DynamicTag, SymbolEntry, layout_of, size_of
from .symbol_table import SymbolTable

_TAG = layout_of(DynamicTag)
_MAX_TAGS = 4096
_MAX_VERSIONS = 32_768  # their numbers have 15 bits
_MAX_STRING = 16_384
_MAX_CHAIN = 1 << 20
_GLIBC = re.compile(r"GLIBC_(\d{1,4}(?:\.\d{1,4}){1,2})")


class Dynamic:
    """The contents of the PT_DYNAMIC segment of an image.

    `symbols` are the dynamic ones, `sections` the section headers, which a load does not use.
    `defined_versions` are the symbol versions that the file defines, such as ``"GLIBC_2.34"``.
    """

    def __init__(self, image: Image) -> None:
        self.image = image
        self._tags: list[tuple[int, int]] = []
        self._strings = b""
        self._versions_left = _MAX_VERSIONS
        self._version_needs: tuple[VersionNeed, ...] = ()
        self.defined_versions: tuple[str, ...] = ()
        self.sections = SectionTable()
        self.symbols = SymbolTable()
        with image.reading():
            self._tags = list(self._read_tags())
        with image.reading():
            self.sections = read_sections(image)
        with image.reading():
            self._strings = bytes(self.table("DT_STRTAB", "DT_STRSZ"))
        with image.reading():
            self.symbols = self._read_symbols()

    def values(self, tag: str) -> list[int]:
        """Return all values of a tag, in order."""
        from elftools.elf.enums import ENUM_D_TAG

        number = ENUM_D_TAG[tag]
        return [value for found, value in self._tags if found == number]

    def value(self, tag: str) -> int:
        """Return the first value of a tag, or 0."""
        return next(iter(self.values(tag)), 0)

    def table(self, address_tag: str, size_tag: str) -> memoryview:
        """Return the bytes of a table that two tags describe; empty if the tags are absent."""
        address, nbytes = self.value(address_tag), self.value(size_tag)
        return self.image.at(address, nbytes, address_tag) if nbytes else memoryview(b"")

    def texts(self, *tags: str) -> tuple[str, ...]:
        """Return the strings that tags point to, in order."""
        return tuple(self._text(offset) for tag in tags for offset in self.values(tag))

    def relocations(
        self, *, places: Collection[int] | None = None, number: int | None = None
    ) -> Iterator[tuple[int, int, int]]:
        """Iterate over the relocations with an addend: place, info, addend.

        By default all of them, else only those at some addresses, or of one type.
        """
        for tags in (("DT_RELA", "DT_RELASZ"), ("DT_JMPREL", "DT_PLTRELSZ")):
            table = _whole(self.table(*tags), elf.RELOCATION.size)
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
            soname=next(iter(self.texts("DT_SONAME")), None),
            needed=self.texts("DT_NEEDED"),
            rpath=self.texts("DT_RPATH"),
            runpath=self.texts("DT_RUNPATH"),
            audit=self.texts("DT_AUDIT", "DT_DEPAUDIT"),
            filter=self.texts("DT_FILTER", "DT_AUXILIARY"),
            version_needs=self._version_needs,
            glibc=_newest_glibc(self._version_needs),
        )

    def hardening(self) -> Hardening:
        """Return how the linker hardened the library."""
        segments = self.image.segments
        flags, flags_1 = self.value("DT_FLAGS"), self.value("DT_FLAGS_1")
        now = self.values("DT_BIND_NOW") or flags & elf.DF_BIND_NOW or flags_1 & elf.DF_1_NOW
        relro = any(s.type == elf.PT_GNU_RELRO for s in segments)
        stack = [s.flags for s in segments if s.type == elf.PT_GNU_STACK]
        loads = [s.flags for s in segments if s.type == elf.PT_LOAD]
        return Hardening(
            relro="none" if not relro else "full" if now else "partial",
            # Without PT_GNU_STACK the stack is executable.
            nx=bool(stack) and not any(f & elf.PF_X for f in stack),
            rwx=any(f & elf.PF_W and f & elf.PF_X for f in loads),
            textrel=bool(self.values("DT_TEXTREL") or flags & elf.DF_TEXTREL),
            branch_protection=read_branch_protection(self.image),
        )

    def _text(self, offset: int) -> str:
        end = self._strings.find(b"\0", offset, offset + _MAX_STRING)
        if end < 0:
            what = f"dynamic section: string at {offset:#x}, expected one that ends with a NUL"
            self.image.problems.append(what)
            return ""
        return self._strings[offset:end].decode("utf-8", "backslashreplace")

    def _read_tags(self) -> Iterator[tuple[int, int]]:
        segment = next((s for s in self.image.segments if s.type == elf.PT_DYNAMIC), None)
        if segment is None:
            raise self.image.error("program headers: no PT_DYNAMIC, expected one")
        data = self.image.at(segment.address, segment.nbytes, "PT_DYNAMIC")
        whole = min(len(data) // _TAG.size, _MAX_TAGS) * _TAG.size
        for tag, value in _TAG.iter_unpack(data[:whole]):
            if tag == 0:
                return
            yield tag, value

    # ---- symbols and their versions

    def _read_symbols(self) -> SymbolTable:
        address = self.value("DT_SYMTAB")
        if not address:
            return SymbolTable()
        count = self._count_symbols(address)
        entries = bytes(self.image.at(address, count * size_of(SymbolEntry), "DT_SYMTAB"))
        versions, names = b"", dict[int, str]()
        with self.image.reading():
            if self.values("DT_VERSYM"):
                versions = bytes(self.image.at(self.value("DT_VERSYM"), 2 * count, "DT_VERSYM"))
                names = dict(self._read_version_names())
        return SymbolTable(entries, self._strings, versions, names)

    def _count_symbols(self, address: int) -> int:
        """Count the symbols by the hash table or, if it is empty, by sections and relocations."""
        if self.values("DT_HASH"):
            data = self.image.at(self.value("DT_HASH"), 8, "DT_HASH")
            return int.from_bytes(data[4:], "little")  # nchain
        count = self._count_hashed() if self.values("DT_GNU_HASH") else 0
        sections = self.sections.of_type(elf.SHT_DYNSYM)
        nbytes = next((s.nbytes for s in sections if s.address == address), 0)
        relocated = 0 if count else self._count_relocated()
        return max(count, nbytes // size_of(SymbolEntry), relocated)

    def _count_hashed(self) -> int:
        """Return one more than the last symbol of all chains; 0 if all are empty."""
        table = self.image.rest_at(self.value("DT_GNU_HASH"), "DT_GNU_HASH")
        header = Struct("<IIII")
        if len(table) < header.size:
            raise self.image.error("DT_GNU_HASH: cut short, expected a header of 16 bytes")
        num_buckets, first, num_words, _ = header.unpack_from(table)
        buckets = table[header.size + 8 * num_words :][: 4 * num_buckets]
        last = max((n for (n,) in Struct("<I").iter_unpack(_whole(buckets, 4))), default=0)
        if last < first:
            return 0
        start = header.size + 8 * num_words + 4 * (num_buckets + last - first)
        chain = _whole(table[start : start + 4 * _MAX_CHAIN], 4)
        for index, (word,) in enumerate(Struct("<I").iter_unpack(chain), last):
            if word & 1:
                return index + 1
        raise self.image.error("DT_GNU_HASH: a chain without an end, expected one in its segment")

    def _count_relocated(self) -> int:
        return max((info >> 32 for _, info, _ in self.relocations()), default=0) + 1

    def _read_version_names(self) -> Iterator[tuple[int, str]]:
        """Iterate over the numbers and names of needed and defined versions."""
        needs: list[VersionNeed] = []
        for at, fields in self._chain("Elf_Verneed", self.value("DT_VERNEED"), "vn_next"):
            names: list[str] = []
            for _, name in self._chain("Elf_Vernaux", at + fields.vn_aux, "vna_next"):
                names.append(self._text(name.vna_name))
                yield name.vna_other & ~elf.VERSYM_HIDDEN, names[-1]
            needs.append(VersionNeed(self._text(fields.vn_file), tuple(names)))
        self._version_needs = tuple(needs)
        defined: list[str] = []
        for at, fields in self._chain("Elf_Verdef", self.value("DT_VERDEF"), "vd_next"):
            if not fields.vd_flags & elf.VER_FLG_BASE:
                for _, name in self._chain("Elf_Verdaux", at + fields.vd_aux, ""):
                    defined.append(self._text(name.vda_name))
                    yield fields.vd_ndx & ~elf.VERSYM_HIDDEN, defined[-1]
        self.defined_versions = tuple(defined)

    def _chain(self, structure: str, address: int, step: str) -> Iterator[tuple[int, Any]]:
        """Follow entries whose field `step` is the distance to the next; one entry without it."""
        while address and self._versions_left:
            self._versions_left -= 1
            offset = self.image.offset_of(address, 8, structure)
            fields = self.image.structure(structure, offset, structure)
            yield address, fields
            if not step or not fields[step]:
                return
            address += fields[step]


def read_dynamic(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> Dynamic:
    """Read the dynamic section of a library or a program, as far as possible."""
    name = os.fspath(path)
    data = map_file(name)
    if bytes(data[:6]) != elf.IDENT[:6]:
        text = f"{valid_path(name)}: expected a 64-bit little-endian ELF file"
        raise LibraryLoadError(text, path=os.fsdecode(name), reason="not-elf")
    return Dynamic(Image(data, valid_path(name), []))


def _whole(data: memoryview, size: int) -> memoryview:
    return data[: len(data) // size * size]


def _newest_glibc(needs: Collection[VersionNeed]) -> str | None:
    """Return the oldest glibc that can load a library: the newest that it names."""
    names = {name for need in needs for name in need.versions}
    found = [match[1] for name in names if (match := _GLIBC.fullmatch(name))]
    return max(found, key=version_numbers, default=None)
