"""Image: the parts of a shared object that the dynamic loader runs or follows, read from bytes.

It also reads damaged files and files of other machines: whatever is outside the file raises
ValueError. The gABI and the psABIs define the numbers. One file: all parts are found by address.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import islice
from struct import Struct, error
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

PT_LOAD, PT_DYNAMIC, PT_GNU_STACK = 1, 2, 0x6474E551
PF_X, PF_W = 1, 2
DT_NEEDED, DT_STRTAB, DT_SYMTAB, DT_STRSZ, DT_SONAME = 1, 5, 6, 10, 14
DT_INIT, DT_FINI, DT_RPATH, DT_TEXTREL, DT_RUNPATH, DT_FLAGS = 12, 13, 15, 22, 29, 30
DF_TEXTREL = 4
DT_INIT_ARRAY, DT_FINI_ARRAY, DT_INIT_ARRAYSZ, DT_FINI_ARRAYSZ = 25, 26, 27, 28
DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ = 32, 33
TAG_NAMES = {
    DT_INIT: "DT_INIT", DT_FINI: "DT_FINI", DT_INIT_ARRAY: "DT_INIT_ARRAY",
    DT_FINI_ARRAY: "DT_FINI_ARRAY", DT_PREINIT_ARRAY: "DT_PREINIT_ARRAY",
}  # fmt: skip
EM_X86_64, EM_AARCH64, EM_RISCV = 62, 183, 243
STT_FUNC, STT_GNU_IFUNC = 2, 10
PACKED = -1  # the type of a relocation in DT_RELR

_PROGRAM_HEADER = Struct("<IIQQQQQQ")
_SECTION_HEADER = Struct("<IIQQQQIIQQ")
_SYMBOL = Struct("<IBBHQQ")
_RELOCATION = Struct("<QQq")
_TAG = Struct("<QQ")
_WORD = Struct("<Q")
_MAX_HEADERS = 4096
_MAX_STRING = 4096
_MAX_RELOCATIONS = 1 << 21
_MAX_NAMED = 1 << 20  # symbols that are read for messages
_MAX_WRITE = 16  # bytes that one relocation writes, at most
_WIDE = (36, 1031)  # the types that write so many: R_X86_64_TLSDESC, R_AARCH64_TLSDESC
_TABLES = ((7, 8), (23, 2))  # DT_RELA, DT_RELASZ; DT_JMPREL, DT_PLTRELSZ
_DT_RELR, _DT_RELRSZ, _DT_HASH, _DT_GNU_HASH = 36, 35, 4, 0x6FFFFEF5
_SYMBOL_SECTIONS = (2, 11)  # SHT_SYMTAB, SHT_DYNSYM


class Segment(NamedTuple):
    """One program header; `nbytes` is its size in the file, `memory_nbytes` its size loaded."""

    type: int
    flags: int
    offset: int
    address: int
    nbytes: int
    memory_nbytes: int


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


class Image:
    """The segments, the dynamic section, the relocations and the symbols of a library.

    Attributes
    ----------
    machine : int
        The number of its processor (e_machine).
    segments : list of Segment
        Its program headers.
    """

    def __init__(self, data: memoryview) -> None:
        self._data = data
        if bytes(data[:6]) != b"\x7fELF\2\1":
            raise ValueError("expected a 64-bit little-endian ELF file")
        self._header = self._unpack(Struct("<16sHHIQQQIHHHHHH"), 0)
        self.machine: int = self._header[2]
        self.segments = [*self._read_segments()]
        self._tags = [*self._read_tags()]
        self._tables = [self._table(*tags) for tags in _TABLES]
        self._order = [self._sorted(table) for table in self._tables]
        self._names: dict[int, str] | None = None

    def values(self, *tags: int) -> list[int]:
        """Return the values of some tags of the dynamic section, in order."""
        return [value for tag, value in self._tags if tag in tags]

    def texts(self, *tags: int) -> list[str]:
        """Return the strings that tags point to, in order."""
        return [self._text(self._strings() + value) for value in self.values(*tags)]

    def arrays(self) -> list[tuple[int, int]]:
        """Return the place and size of each array of functions that the loader calls."""
        tags = (
            (DT_INIT_ARRAY, DT_INIT_ARRAYSZ),
            (DT_FINI_ARRAY, DT_FINI_ARRAYSZ),
            (DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ),
        )
        return [(at, n) for tag, size in tags for at in self.values(tag) for n in self.values(size)]

    def at(self, address: int, nbytes: int) -> memoryview:
        """Return the bytes of the file that a load maps at an address."""
        offset = self._offset(address, nbytes)
        if offset is None or offset + nbytes > len(self._data):
            raise ValueError(f"{nbytes} bytes at {address:#x}, expected inside one PT_LOAD")
        return self._data[offset : offset + nbytes]

    def word(self, address: int) -> int:
        """Return 8 bytes of the file as a number."""
        number: int = _WORD.unpack(self.at(address, 8))[0]
        return number

    def segment_at(self, address: int, nbytes: int = 1) -> Segment | None:
        """Return the PT_LOAD that has these addresses, memory without file bytes included."""
        for segment in self.segments:
            start = address - segment.address
            if segment.type == PT_LOAD and 0 <= start <= segment.memory_nbytes - nbytes:
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
        table = next(iter(self.values(DT_SYMTAB)), 0)
        fields = _SYMBOL.unpack(self.at(table + index * _SYMBOL.size, _SYMBOL.size))
        return _symbol(fields, self._text(self._strings() + fields[0]))

    def resolver(self) -> Symbol | None:
        """Return the first symbol of the file whose address a function returns, or None."""
        for index, kind in enumerate(bytes(self._symbol_table())[4 :: _SYMBOL.size]):
            if kind & 15 == STT_GNU_IFUNC and (found := self.symbol(index)).section != 0:
                return found
        return None

    def defined(self, names: Collection[str]) -> Iterator[Symbol]:
        """Iterate over the symbols with these names that the file defines."""
        texts = bytes(self.at(self._strings(), next(iter(self.values(DT_STRSZ)), 0)))
        offsets = {at for name in names for at in _occurrences(texts, name.encode() + b"\0")}
        for index, offset in enumerate(self._symbol_table().cast("I")[:: _SYMBOL.size // 4]):
            if offset in offsets and (symbol := self.symbol(index)).section != 0:
                yield symbol

    def name_at(self, address: int) -> str:
        """Return a symbol at an address, for messages; "" if there is none."""
        if self._names is None:
            try:
                symbols = islice(self._symbols(), _MAX_NAMED)
                found = {s.address: s.name for s in symbols if s.section and s.type == STT_FUNC}
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
                table = self._data[section[4] : section[4] + section[5]]
                for fields in _SYMBOL.iter_unpack(table[: len(table) // 24 * 24]):
                    yield _symbol(fields, self._string(names[4] + fields[0]))

    # ---- the parts of the file

    def _unpack(self, layout: Struct, offset: int) -> tuple[int, ...]:
        try:
            return layout.unpack_from(self._data, offset)
        except error:
            raise ValueError(f"{layout.size} bytes at offset {offset:#x}: cut short") from None

    def _read_segments(self) -> Iterator[Segment]:
        start, count = self._header[5], self._header[10]
        for index in range(min(count, _MAX_HEADERS)):
            kind, flags, offset, address, _, nbytes, memory, _ = self._unpack(
                _PROGRAM_HEADER, start + index * _PROGRAM_HEADER.size
            )
            yield Segment(kind, flags, offset, address, nbytes, memory)

    def _read_sections(self) -> Iterator[tuple[int, ...]]:
        start, count = self._header[6], self._header[12]
        for index in range(min(count, _MAX_HEADERS) if start else 0):
            yield self._unpack(_SECTION_HEADER, start + index * _SECTION_HEADER.size)

    def _read_tags(self) -> Iterator[tuple[int, int]]:
        dynamic = [segment for segment in self.segments if segment.type == PT_DYNAMIC]
        for segment in dynamic[:1]:
            table = self.at(segment.address, segment.nbytes // _TAG.size * _TAG.size)
            for tag, value in _TAG.iter_unpack(table):
                if tag == 0:
                    return
                yield tag, value

    def _table(self, tag: int, size_tag: int) -> memoryview:
        address, nbytes = self.values(tag), self.values(size_tag)
        if not address or not nbytes:
            return memoryview(b"")
        count = nbytes[0] // _RELOCATION.size
        if count > _MAX_RELOCATIONS:
            raise ValueError(f"{count} relocations, expected at most {_MAX_RELOCATIONS}")
        return self.at(address[0], count * _RELOCATION.size)

    @staticmethod
    def _sorted(table: memoryview) -> tuple[list[int], list[int]]:
        places = _words(table)[::3]
        order = sorted(range(len(places)), key=places.__getitem__)
        return [places[index] for index in order], order

    def _symbol_table(self) -> memoryview:
        count = self._num_symbols()
        table = self.values(DT_SYMTAB)
        return self.at(table[0], count * _SYMBOL.size) if count else memoryview(b"")

    def _num_symbols(self) -> int:
        """Count the dynamic symbols that a look-up finds or a relocation names."""
        if not self.values(DT_SYMTAB):
            return 0
        named = (info >> 32 for table in self._tables for info in _words(table)[1::3])
        count = max(named, default=0) + 1
        if tables := self.values(_DT_HASH):
            count = max(count, self.word(tables[0]) >> 32)
        return max([count, *(self._num_hashed(table) for table in self.values(_DT_GNU_HASH))])

    def _num_hashed(self, table: int) -> int:
        num_buckets, first, num_words, _ = Struct("<IIII").unpack(self.at(table, 16))
        buckets = table + 16 + 8 * num_words
        last = max(self.at(buckets, 4 * num_buckets).cast("I"), default=0)
        chains = buckets + 4 * num_buckets
        while last >= first and not self.at(chains + 4 * (last - first), 4)[0] & 1:
            last += 1
        return last + 1

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

    def _strings(self) -> int:
        return next(iter(self.values(DT_STRTAB)), 0)

    def _text(self, address: int) -> str:
        offset = self._offset(address, 1)
        if offset is None:
            raise ValueError(f"string at {address:#x}, expected inside one PT_LOAD")
        return self._string(offset)

    def _string(self, offset: int) -> str:
        found = bytes(self._data[offset : offset + _MAX_STRING]).partition(b"\0")[0]
        return found.decode("utf-8", "backslashreplace")

    def _offset(self, address: int, nbytes: int) -> int | None:
        for segment in self.segments:
            start = address - segment.address
            if segment.type == PT_LOAD and 0 <= start <= segment.nbytes - nbytes:
                return segment.offset + start
        return None


def _words(table: memoryview) -> list[int]:
    return table.cast("Q").tolist() if table else []


def _occurrences(texts: bytes, text: bytes) -> Iterator[int]:
    at = texts.find(text)
    while at >= 0:
        yield at
        at = texts.find(text, at + 1)


def _relocation(table: memoryview, index: int) -> Relocation:
    place, info, addend = _RELOCATION.unpack_from(table, index * _RELOCATION.size)
    return Relocation(place, info & 0xFFFFFFFF, info >> 32, addend)


def _symbol(fields: tuple[int, ...], name: str) -> Symbol:
    return Symbol(name, fields[1] & 15, fields[3], fields[4])
