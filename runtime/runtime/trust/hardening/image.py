"""Image: the parts of a shared object that the dynamic loader runs or follows, read from bytes.

It also reads damaged files and files of other machines: whatever is outside the file raises
ValueError. The gABI and the psABIs define the numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from ... import elf
from ...elf import RELOCATION, SYMBOL, ElfImage, occurrences

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from ...elf import Segment

PACKED = -1  # the type of a relocation in DT_RELR

_MAX_SECTIONS = 4096
_MAX_STRING = 4096
_MAX_RELOCATIONS = 1 << 21
_MAX_NAMED = 1 << 20  # symbols that are read for messages
_MAX_WRITE = 16  # bytes that one relocation writes, at most
_WIDE = (36, 1031)  # the types that write so many: R_X86_64_TLSDESC, R_AARCH64_TLSDESC
_DT_RELR, _DT_RELRSZ = 36, 35
_SYMBOL_SECTIONS = (2, 11)  # SHT_SYMTAB, SHT_DYNSYM


class Symbol(NamedTuple):
    """A symbol; section 0 means that another library defines it."""

    name: str
    type: int
    section: int
    address: int


class Relocation(NamedTuple):
    """A relocation: the number of its type, the index of its symbol, 0 without, its addend."""

    place: int
    type: int
    symbol: int
    addend: int


class Image(ElfImage):
    """The dynamic section, the relocations and the symbols of a library."""

    def __init__(self, data: memoryview) -> None:
        super().__init__(data)
        self.read_dynamic()
        self._tables = [*self.relocation_tables()]
        for table in self._tables:
            if (count := len(table) // RELOCATION.size) > _MAX_RELOCATIONS:
                raise self.error(f"{count} relocations, expected at most {_MAX_RELOCATIONS}")
        self._order = [self._sorted(table) for table in self._tables]
        count = self.num_symbols()
        self._symbol_table = memoryview(b"")
        if count:
            self._symbol_table = self.at(self.value(elf.DT_SYMTAB), count * SYMBOL.size)
        self._names: dict[int, str] | None = None

    def arrays(self) -> list[tuple[int, int]]:
        """Return the place and size of each array of functions that the loader calls."""
        tags = (
            (elf.DT_INIT_ARRAY, elf.DT_INIT_ARRAYSZ),
            (elf.DT_FINI_ARRAY, elf.DT_FINI_ARRAYSZ),
            (elf.DT_PREINIT_ARRAY, elf.DT_PREINIT_ARRAYSZ),
        )
        return [(at, n) for tag, size in tags for at in self.values(tag) for n in self.values(size)]

    def word(self, address: int) -> int:
        """Return 8 bytes of the file as a number."""
        return int.from_bytes(self.at(address, 8), "little")

    def segment_at(self, address: int, nbytes: int = 1) -> Segment | None:
        """Return the PT_LOAD that has these addresses, memory without file bytes included."""
        for segment in self.segments:
            start = address - segment.address
            if segment.type == elf.PT_LOAD and 0 <= start <= segment.memory_nbytes - nbytes:
                return segment
        return None

    def relocations_at(self, address: int, nbytes: int = 8) -> list[Relocation]:
        """Return the relocations that may write to these bytes; packed ones are PACKED."""
        found = []
        for table, (places, order) in zip(self._tables, self._order, strict=True):
            low = bisect_right(places, address - _MAX_WRITE)
            for position in range(low, bisect_right(places, address + nbytes - 1)):
                relocation = _relocation(table, order[position])
                if relocation.place > address - 8 or relocation.type in _WIDE:
                    found.append(relocation)
        packed = self._packed_at(address - 7, address + nbytes)
        return found + [Relocation(place, PACKED, 0, 0) for place in packed]

    def has_relocation(self, number: int) -> Relocation | None:
        """Return the first relocation of a type, or None."""
        for table in self._tables:
            types = table.cast("I")[2::6].tolist()
            if number in types:
                return _relocation(table, types.index(number))
        return None

    def symbol(self, index: int) -> Symbol:
        """Return a dynamic symbol by its index."""
        at = self.value(elf.DT_SYMTAB) + index * SYMBOL.size
        fields = SYMBOL.unpack(self.at(at, SYMBOL.size, "elf.DT_SYMTAB"))
        return _symbol(fields, self.text(fields[0]))

    def resolver(self) -> Symbol | None:
        """Return the first symbol of the file whose address a function returns, or None."""
        for index, kind in enumerate(bytes(self._symbol_table)[4 :: SYMBOL.size]):
            if kind & 15 == elf.STT_GNU_IFUNC and (found := self.symbol(index)).section != 0:
                return found
        return None

    def defined(self, names: Collection[str]) -> Iterator[Symbol]:
        """Iterate over the symbols with these names that the file defines."""
        texts = bytes(self.table(elf.DT_STRTAB, elf.DT_STRSZ))
        offsets = {at for name in names for at in occurrences(texts, name.encode() + b"\0")}
        for index, offset in enumerate(self._symbol_table.cast("I")[:: SYMBOL.size // 4]):
            if offset in offsets and (symbol := self.symbol(index)).section != 0:
                yield symbol

    def name_at(self, address: int) -> str:
        """Return a symbol at an address, for messages; "" if there is none."""
        if self._names is None:
            try:
                symbols = islice(self._symbols(), _MAX_NAMED)
                found = {s.address: s.name for s in symbols if s.section and s.type == elf.STT_FUNC}
            except ValueError:
                found = {}
            self._names = found
        return self._names.get(address, "")

    def _symbols(self) -> Iterator[Symbol]:
        """Iterate over the symbols of the sections .dynsym and .symtab."""
        sections = [*self._read_sections()]
        for section in sections:
            if section[1] in _SYMBOL_SECTIONS and section[6] < len(sections):
                names = sections[section[6]]
                table = self.data[section[4] : section[4] + section[5]]
                for fields in SYMBOL.iter_unpack(table[: len(table) // 24 * 24]):
                    yield _symbol(fields, self._string(names[4] + fields[0]))

    # ---- the parts of the file

    def _read_sections(self) -> Iterator[tuple[int, ...]]:
        start, count = self._header[6], self._header[12]
        nbytes = min(count, _MAX_SECTIONS) * elf.SECTION_HEADER.size if start else 0
        yield from elf.SECTION_HEADER.iter_unpack(self.slice(start, nbytes, "section headers"))

    @staticmethod
    def _sorted(table: memoryview) -> tuple[list[int], list[int]]:
        places = _words(table)[::3]
        order = sorted(range(len(places)), key=places.__getitem__)
        return [places[index] for index in order], order

    def _packed_at(self, start: int, end: int) -> Iterator[int]:
        """Iterate over the places of packed relative relocations (DT_RELR) in a range."""
        address, nbytes = self.values(_DT_RELR), self.values(_DT_RELRSZ)
        if not address or not nbytes:
            return
        first = 0  # the place of the lowest bit of the next bitmap
        for entry in self.at(address[0], nbytes[0] // 8 * 8).cast("Q"):
            if not entry & 1:
                if start <= entry < end:
                    yield entry
                first = entry + 8
                continue
            for bit in range(max(0, -((first - start) // 8)), 63 if end > first else 0):
                if first + 8 * bit >= end:
                    break
                if entry >> bit + 1 & 1:
                    yield first + 8 * bit
            first += 63 * 8

    def _string(self, offset: int) -> str:
        found = bytes(self.data[offset : offset + _MAX_STRING]).partition(b"\0")[0]
        return found.decode("utf-8", "backslashreplace")


def _words(table: memoryview) -> list[int]:
    return table.cast("Q").tolist() if table else []


def _relocation(table: memoryview, index: int) -> Relocation:
    place, info, addend = RELOCATION.unpack_from(table, index * RELOCATION.size)
    return Relocation(place, info & 0xFFFFFFFF, info >> 32, addend)


def _symbol(fields: tuple[int, ...], name: str) -> Symbol:
    return Symbol(name, fields[1] & 15, fields[3], fields[4])
