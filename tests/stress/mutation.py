"""Mutate a library: its ELF metadata and its blob, never a byte of code."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.support.elf_poke import RECORDS, SIZES, Elf, Record

IRELATIVE, GNU_IFUNC = 37, 10  # psABI of x86-64; gABI
TLS = (16, 17, 18, 36)  # DTPMOD64, DTPOFF64, TPOFF64, TLSDESC
_WIDTHS = {"B": 1, "H": 2, "I": 4, "Q": 8}
_EDGES: tuple[int, ...] = (
    0,
    1,
    2,
    3,
    7,
    8,
    16,
    24,
    0x7F,
    0x80,
    0xFF,
    0x1000,
    0x7FFF,
    0xFFFF,
    0xFF00,
    1 << 20,
)
_EDGES += (1 << 31, (1 << 31) - 1, (1 << 32) - 1, 1 << 40, 1 << 47, 1 << 62, 1 << 63, (1 << 64) - 1)
_STEPS = (1, 2, 4, 8, 16, 24, 64, 0x1000, 0x10000)
_TABLES = {  # kind of record: the tag of its table, and of the table's size
    "rela": (("RELA", "RELASZ"), ("JMPREL", "PLTRELSZ")),
    "u64": (("RELR", "RELRSZ"), ("INIT_ARRAY", "INIT_ARRAYSZ"), ("FINI_ARRAY", "FINI_ARRAYSZ")),
}


class Field(NamedTuple):
    """Some bytes that mean one number."""

    offset: int
    width: int


class Part(NamedTuple):
    """Fields of one kind, and the records that they are in; or a range of any bytes."""

    name: str
    fields: list[Field]
    records: list[tuple[int, int]]  # offset, nbytes; all of one size


class Library:
    """A good library, and where its metadata is."""

    def __init__(self, path: Path) -> None:
        self.name, self.data = path.stem, path.read_bytes()
        self.elf = Elf(self.data)
        self.parts = [part for part in self._find_parts() if part.fields]

    def mutate(self, choose: random.Random) -> bytearray:
        """Change one to four things of the library."""
        data = bytearray(self.data)
        for _ in range(choose.choice((1, 1, 1, 1, 2, 2, 3, 4))):
            part = choose.choice(self.parts)
            if len(part.records) > 1 and choose.random() < 0.1:
                _swap(data, *choose.sample(part.records, 2), is_copy=choose.random() < 0.5)
            else:
                _change(data, choose.choice(part.fields), part, choose)
        return data

    def _find_parts(self) -> Iterator[Part]:
        elf = self.elf
        yield _part("header", "header", [0])
        count = elf.peek(elf.header, "e_phnum")
        start = elf.peek(elf.header, "e_phoff")
        yield _part("program", "program", [start + i * SIZES["program"] for i in range(count)])
        if start := elf.peek(elf.header, "e_shoff"):
            count = elf.peek(elf.header, "e_shnum")
            yield _part("section", "section", [start + i * SIZES["section"] for i in range(count)])
        dynamic = elf.program("DYNAMIC")
        start, nbytes = elf.peek(dynamic, "p_offset"), elf.peek(dynamic, "p_filesz")
        yield _part("dynamic", "dynamic", list(range(start, start + nbytes, 16)))
        for kind, tables in _TABLES.items():
            for tag, size_tag in tables:
                yield _part(tag, kind, _entries(elf, kind, tag, size_tag))
        yield from self._find_symbols()
        yield from self._find_ranges()

    def _find_symbols(self) -> Iterator[Part]:
        section = self.elf.section("DYNSYM")
        start, nbytes = self.elf.peek(section, "sh_offset"), self.elf.peek(section, "sh_size")
        yield _part("symbol", "symbol", list(range(start, start + nbytes, SIZES["symbol"])))
        count = nbytes // SIZES["symbol"]
        for tag, width in (("VERSYM", 2), ("GNU_HASH", 4), ("HASH", 4), ("STRTAB", 1)):
            if (start := _value(self.elf, tag)) is None:
                continue
            place = self.elf.at("u8", start).offset
            sizes = {"VERSYM": 2 * count, "STRTAB": _value(self.elf, "STRSZ") or 0}
            fields = range(place, place + sizes.get(tag, 8 * count + 24), width)
            yield Part(tag, [Field(offset, width) for offset in fields], [])
        for tag in ("VERNEED", "VERDEF"):
            if (start := _value(self.elf, tag)) is not None:
                place = self.elf.at("u8", start).offset
                yield Part(tag, [Field(place + i, 2) for i in range(0, 96, 2)], [])

    def _find_ranges(self) -> Iterator[Part]:
        """Symbols' bytes: the blob, the manifest, the metadata, and all that is not code."""
        section = self.elf.section("DYNSYM")
        count = self.elf.peek(section, "sh_size") // SIZES["symbol"]
        for index in range(1, count):
            record = self.elf.table("symbol", "SYMTAB", index)
            if self.elf.peek(record, "st_info") & 15 != 1 or not self.elf.peek(record, "st_shndx"):
                continue
            nbytes = self.elf.peek(record, "st_size")
            try:
                start = self.elf.at("u8", self.elf.peek(record, "st_value")).offset
            except KeyError:
                continue  # .bss
            words = [Field(start + i, 8) for i in range(nbytes - 7)]
            yield Part(f"symbol {index}", words + [Field(start + i, 1) for i in range(nbytes)], [])
        code = [load for load in self.elf.programs("LOAD") if self.elf.peek(load, "p_flags") & 1]
        ranges = [
            (start := self.elf.peek(load, "p_offset"), start + self.elf.peek(load, "p_filesz"))
            for load in code
        ]
        others = [
            Field(offset, 1)
            for offset in range(len(self.data))
            if not any(start <= offset < end for start, end in ranges)
        ]
        yield Part("any", others, [])


def called_addresses(data: bytes) -> list[int]:
    """The addresses that the loader calls by itself: they may be of other code in a mutant."""
    elf = Elf(data)
    relocated, called = {}, []
    for tag, size_tag in _TABLES["rela"]:
        for offset in _entries(elf, "rela", tag, size_tag):
            record = Record("rela", offset)
            symbol = elf.table("symbol", "SYMTAB", elf.peek(record, "r_symbol"))
            value = elf.peek(record, "r_addend") + elf.peek(symbol, "st_value")
            relocated[elf.peek(record, "r_offset")] = value
            if elf.peek(record, "r_type") == IRELATIVE:
                called.append(value)
            elif elf.peek(symbol, "st_info") & 15 == GNU_IFUNC and elf.peek(symbol, "st_shndx"):
                called.append(elf.peek(symbol, "st_value"))
    called += [value for tag in ("INIT", "FINI") if (value := _value(elf, tag)) is not None]
    for tag, size_tag in _TABLES["u64"][1:]:
        start = _value(elf, tag) or 0
        for i, offset in enumerate(_entries(elf, "u64", tag, size_tag)):
            called.append(relocated.get(start + 8 * i, elf.peek(Record("u64", offset), "word")))
    return sorted(called)


def thread_relocations(data: bytes) -> list[tuple[int, ...]]:
    """The relocations by which code finds its thread-local variables."""
    elf = Elf(data)
    fields = ("r_offset", "r_type", "r_symbol", "r_addend")
    rows = [
        tuple(elf.peek(Record("rela", offset), field) for field in fields)
        for tag, size_tag in _TABLES["rela"]
        for offset in _entries(elf, "rela", tag, size_tag)
    ]
    return sorted(row for row in rows if row[1] in TLS)


def is_called_code(data: bytes) -> bool:
    """Return True if the functions that the loader calls by itself are in executable segments."""
    elf = Elf(data)
    loads = [load for load in elf.programs("LOAD") if elf.peek(load, "p_flags") & 1]
    ranges = [(elf.peek(load, "p_vaddr"), elf.peek(load, "p_filesz")) for load in loads]
    return all(
        any(start <= vaddr < start + nbytes for start, nbytes in ranges)
        for vaddr in called_addresses(data)
    )


def _value(elf: Elf, tag: str) -> int | None:
    try:
        return elf.peek(elf.tag(tag), "d_val")
    except StopIteration:
        return None


def _entries(elf: Elf, kind: str, tag: str, size_tag: str) -> list[int]:
    start, nbytes = _value(elf, tag), _value(elf, size_tag)
    if start is None or nbytes is None:
        return []
    place = elf.at(kind, start).offset
    return [place + i * SIZES[kind] for i in range(nbytes // SIZES[kind])]


def _part(name: str, kind: str, offsets: list[int]) -> Part:
    fields = []
    at = 0
    for text in RECORDS[kind].split():
        code = text.partition(":")[0]
        width = _WIDTHS.get(code, 16)
        if width <= 8:
            fields += [Field(offset + at, width) for offset in offsets]
        else:
            fields += [Field(offset + at + i, 1) for offset in offsets for i in range(width)]
        at += width
    return Part(name, fields, [(offset, SIZES[kind]) for offset in offsets])


def _swap(data: bytearray, one: tuple[int, int], other: tuple[int, int], *, is_copy: bool) -> None:
    (first, nbytes), (second, _) = one, other
    kept = data[first : first + nbytes]
    if not is_copy:
        data[first : first + nbytes] = data[second : second + nbytes]
    data[second : second + nbytes] = kept


def _change(data: bytearray, field: Field, part: Part, choose: random.Random) -> None:
    offset, width = field
    limit = 256**width
    value = int.from_bytes(data[offset : offset + width], "little")
    way = choose.randrange(6)
    if way == 0:
        value ^= 1 << choose.randrange(8 * width)
    elif way == 1:
        value = choose.choice(_EDGES)
    elif way == 2:
        value += choose.choice(_STEPS) * choose.choice((1, -1))
    elif way == 3:
        other = choose.choice(part.fields)
        value = int.from_bytes(data[other.offset : other.offset + other.width], "little")
    elif way == 4:
        value = choose.randrange(limit)
    else:
        value = choose.randrange(len(data))
    data[offset : offset + width] = (value % limit).to_bytes(width, "little")
