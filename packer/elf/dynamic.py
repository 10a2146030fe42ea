"""Dynamic: the dynamic section and the tables that it leads to, as the dynamic loader has them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from itertools import compress, repeat
from struct import Struct
from typing import TYPE_CHECKING, Any

from ..inspect.report import Hardening, Linkage, VersionNeed
from .image import PF_W, PF_X, PT_DYNAMIC, PT_GNU_RELRO, PT_GNU_STACK, PT_LOAD
from .notes import read_branch_protection
from .section_table import SHT_DYNSYM, SectionTable, read_sections
from .symbol_table import ENTRY, SymbolTable

if TYPE_CHECKING:
    from .image import Image

# Elf64_Dyn and Elf64_Rela (gABI); plain structs, since libraries have 100,000 of the latter.
_TAG = Struct("<qQ")
RELOCATION = Struct("<QQq")
_MAX_TAGS = 4096
_MAX_VERSIONS = 32_768  # their numbers have 15 bits
_MAX_STRING = 16_384
_MAX_CHAIN = 1 << 20

# gABI and LSB: bits of DT_FLAGS and DT_FLAGS_1.
_DF_TEXTREL, _DF_BIND_NOW, _DF_1_NOW = 4, 8, 1
_VER_FLG_BASE = 1
_GLIBC = re.compile(r"GLIBC_(\d{1,4}(?:\.\d{1,4}){1,2})")


class Dynamic:
    """What the PT_DYNAMIC segment of an image says.

    Attributes
    ----------
    sections : SectionTable
        The section headers, which a load does not use.
    symbols : SymbolTable
        The dynamic symbols.
    defined_versions : tuple of str
        The symbol versions that it defines, such as ``"GLIBC_2.34"``.
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
        """All values of a tag, in order."""
        from elftools.elf.enums import ENUM_D_TAG

        number = ENUM_D_TAG[tag]
        return [value for found, value in self._tags if found == number]

    def value(self, tag: str) -> int:
        """The first value of a tag, or 0."""
        return next(iter(self.values(tag)), 0)

    def table(self, address_tag: str, size_tag: str) -> memoryview:
        """Give the bytes of a table that two tags describe; none where they are absent.

        Raises
        ------
        LibraryLoadError
            They do not lie in the file.
        """
        address, nbytes = self.value(address_tag), self.value(size_tag)
        return self.image.at(address, nbytes, address_tag) if nbytes else memoryview(b"")

    def texts(self, *tags: str) -> tuple[str, ...]:
        """The strings that tags name, in order."""
        return tuple(self._text(offset) for tag in tags for offset in self.values(tag))

    def relocations(
        self, *, places: Collection[int] | None = None, kind: int | None = None
    ) -> Iterator[tuple[int, int, int]]:
        """Each relocation with an addend: place, info, addend.

        Parameters
        ----------
        places : collection of int, optional
            Only those at one of these addresses.
        kind : int, optional
            Only those of this type.

        Raises
        ------
        LibraryLoadError
            A table does not lie in the file.
        """
        for tags in (("DT_RELA", "DT_RELASZ"), ("DT_JMPREL", "DT_PLTRELSZ")):
            table = _whole(self.table(*tags), RELOCATION.size)
            found: Iterable[bool] = repeat(True)
            if places is not None:
                found = map(places.__contains__, table.cast("Q")[::3].tolist())
            elif kind is not None:
                found = map(kind.__eq__, table.cast("I")[2::6].tolist())
            for index in compress(range(len(table) // RELOCATION.size), found):
                yield RELOCATION.unpack_from(table, index * RELOCATION.size)

    def linkage(self) -> Linkage:
        """Read what other files the library asks for."""
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
        """Read how the linker hardened the library."""
        segments = self.image.segments
        flags, flags_1 = self.value("DT_FLAGS"), self.value("DT_FLAGS_1")
        now = self.values("DT_BIND_NOW") or flags & _DF_BIND_NOW or flags_1 & _DF_1_NOW
        relro = any(s.type == PT_GNU_RELRO for s in segments)
        stack = [s.flags for s in segments if s.type == PT_GNU_STACK]
        loads = [s.flags for s in segments if s.type == PT_LOAD]
        return Hardening(
            relro="none" if not relro else "full" if now else "partial",
            nx=bool(stack) and not any(f & PF_X for f in stack),  # none at all means executable
            rwx=any(f & PF_W and f & PF_X for f in loads),
            textrel=bool(self.values("DT_TEXTREL") or flags & _DF_TEXTREL),
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
        segment = next((s for s in self.image.segments if s.type == PT_DYNAMIC), None)
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
        entries = bytes(self.image.at(address, count * ENTRY.size, "DT_SYMTAB"))
        versions, names = b"", dict[int, str]()
        with self.image.reading():
            if self.values("DT_VERSYM"):
                versions = bytes(self.image.at(self.value("DT_VERSYM"), 2 * count, "DT_VERSYM"))
                names = dict(self._read_version_names())
        return SymbolTable(entries, self._strings, versions, names)

    def _count_symbols(self, address: int) -> int:
        """No tag says how many there are: the hash table does, and where it is empty others do."""
        if self.values("DT_HASH"):
            data = self.image.at(self.value("DT_HASH"), 8, "DT_HASH")
            return int.from_bytes(data[4:], "little")  # nchain
        count = self._count_hashed() if self.values("DT_GNU_HASH") else 0
        sections = self.sections.of_type(SHT_DYNSYM)
        nbytes = next((s.nbytes for s in sections if s.address == address), 0)
        return max(count, nbytes // ENTRY.size, self._count_relocated() if not count else 0)

    def _count_hashed(self) -> int:
        """One more than the last symbol of the longest-reaching chain; 0 where all are empty."""
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
        """The names by their numbers: of versions that it needs, and that it defines."""
        needs: list[VersionNeed] = []
        for at, fields in self._chain("Elf_Verneed", self.value("DT_VERNEED"), "vn_next"):
            names: list[str] = []
            for _, name in self._chain("Elf_Vernaux", at + fields.vn_aux, "vna_next"):
                names.append(self._text(name.vna_name))
                yield name.vna_other & 0x7FFF, names[-1]
            needs.append(VersionNeed(self._text(fields.vn_file), tuple(names)))
        self._version_needs = tuple(needs)
        defined: list[str] = []
        for at, fields in self._chain("Elf_Verdef", self.value("DT_VERDEF"), "vd_next"):
            if not fields.vd_flags & _VER_FLG_BASE:
                for _, name in self._chain("Elf_Verdaux", at + fields.vd_aux, ""):
                    defined.append(self._text(name.vda_name))
                    yield fields.vd_ndx & 0x7FFF, defined[-1]
        self.defined_versions = tuple(defined)

    def _chain(self, structure: str, address: int, step: str) -> Iterator[tuple[int, Any]]:
        """Follow records that say how far the next one is; one record only without a step."""
        while address and self._versions_left:
            self._versions_left -= 1
            offset = self.image.offset_of(address, 8, structure)
            fields = self.image.record(structure, offset, structure)
            yield address, fields
            if not step or not fields[step]:
                return
            address += fields[step]


def _whole(data: memoryview, size: int) -> memoryview:
    return data[: len(data) // size * size]


def _newest_glibc(needs: Collection[VersionNeed]) -> str | None:
    """The version of glibc that a library needs at least: the newest that it names."""
    names = {name for need in needs for name in need.versions}
    found = [match[1] for name in names if (match := _GLIBC.fullmatch(name))]
    numbers = [tuple(map(int, text.split("."))) for text in found]
    return ".".join(map(str, max(numbers))) if numbers else None
