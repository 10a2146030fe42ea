"""A 64-bit little-endian ELF file as the dynamic loader maps it, read from its bytes.

Files may be damaged, or of other machines: a read outside the file raises `ElfImage.error`. The
gABI (System V ABI, chapters 4 and 5) defines the names and numbers. native/elf has the static check
of a load.
"""

from __future__ import annotations

from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = b"\x7fELF\2\1"  # with ELFCLASS64 and ELFDATA2LSB
PT_LOAD, PT_DYNAMIC, PT_GNU_STACK = 1, 2, 0x6474E551
PF_X, PF_W, PF_R = 1, 2, 4
DT_NULL, DT_NEEDED, DT_PLTRELSZ, DT_HASH, DT_STRTAB, DT_SYMTAB = 0, 1, 2, 4, 5, 6
DT_RELA, DT_RELASZ, DT_STRSZ, DT_SONAME, DT_JMPREL = 7, 8, 10, 14, 23
DT_RPATH, DT_TEXTREL, DT_RUNPATH, DT_FLAGS, DT_GNU_HASH = 15, 22, 29, 30, 0x6FFFFEF5
DT_INIT, DT_FINI, DF_TEXTREL = 12, 13, 4
DT_INIT_ARRAY, DT_FINI_ARRAY, DT_INIT_ARRAYSZ, DT_FINI_ARRAYSZ = 25, 26, 27, 28
DT_PREINIT_ARRAY, DT_PREINIT_ARRAYSZ = 32, 33
STT_FUNC, STT_GNU_IFUNC = 2, 10
EM_X86_64, EM_AARCH64, EM_RISCV = 62, 183, 243

HEADER, PROGRAM_HEADER = Struct("<16sHHIQQQIHHHHHH"), Struct("<IIQQQQQQ")
SECTION_HEADER, SYMBOL = Struct("<IIQQQQIIQQ"), Struct("<IBBHQQ")
RELOCATION, TAG = Struct("<QQq"), Struct("<QQ")

_MAX_SEGMENTS = 4096
_MAX_TAGS = 65_536
_MAX_STRING = 16_384
_MAX_CHAIN = 1 << 20


class Segment(NamedTuple):
    """One program header; `nbytes` is its size in the file, `memory_nbytes` its size loaded."""

    type: int
    flags: int
    offset: int
    address: int
    nbytes: int
    memory_nbytes: int


class ElfImage:
    """The segments and the dynamic section of a file."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        if bytes(data[:6]) != MAGIC:
            raise self.error("expected a 64-bit little-endian ELF file", "not-elf")
        self._header = HEADER.unpack(self.slice(0, HEADER.size, "ELF header"))
        self.machine_number: int = self._header[2]
        self.segments = [*self._read_segments()]
        self._tags: list[tuple[int, int]] = []

    def error(self, what: str, reason: str = "malformed") -> Exception:
        """Make the error for a file that is damaged."""
        del reason
        return ValueError(what)

    def read_dynamic(self) -> None:
        """Read the dynamic section, as `values` and what follows it need it."""
        segment = next((s for s in self.segments if s.type == PT_DYNAMIC), None)
        if segment is None:
            raise self.error("program headers: no PT_DYNAMIC, expected one")
        table = self.at(segment.address, segment.nbytes, "PT_DYNAMIC")
        for tag, value in islice(TAG.iter_unpack(_whole(table, TAG.size)), _MAX_TAGS):
            if tag == DT_NULL:
                return
            self._tags.append((tag, value))
        if segment.nbytes // TAG.size > _MAX_TAGS:
            raise self.error(f"dynamic section: expected DT_NULL within {_MAX_TAGS} entries")

    # ---- bytes

    def slice(self, offset: int, nbytes: int, where: str) -> memoryview:
        """Return bytes of the file by their offset."""
        if nbytes > len(self.data) - offset:
            text = f"{nbytes:#x} bytes at offset {offset:#x}, expected inside the file of "
            raise self.error(f"{where}: {text}{len(self.data):#x} bytes", "truncated")
        return self.data[offset : offset + nbytes]

    def at(self, address: int, nbytes: int, where: str = "code") -> memoryview:
        """Return the bytes of the file that a load maps at an address."""
        return self.slice(self.offset_of(address, nbytes, where), nbytes, where)

    def rest_at(self, address: int, where: str) -> memoryview:
        """Return all file bytes from an address to the end of its segment."""
        load = self._load_at(address, 0)
        return self.at(address, load.address + load.nbytes - address if load else 0, where)

    def offset_of(self, address: int, nbytes: int, where: str) -> int:
        """Return the file offset that a load maps to an address, inside one segment."""
        load = self._load_at(address, nbytes)
        if load is None:
            text = f"{nbytes:#x} bytes at address {address:#x}, expected inside one PT_LOAD"
            raise self.error(f"{where}: {text} with file bytes")
        return load.offset + address - load.address

    def _load_at(self, address: int, nbytes: int) -> Segment | None:
        for load in self.segments:
            if load.type == PT_LOAD and 0 <= address - load.address <= load.nbytes - nbytes:
                return load
        return None

    # ---- the dynamic section

    def values(self, *tags: int) -> list[int]:
        """Return the values of some tags of the dynamic section, in order."""
        return [value for tag, value in self._tags if tag in tags]

    def value(self, tag: int) -> int:
        """Return the first value of a tag, or 0."""
        return next(iter(self.values(tag)), 0)

    def texts(self, *tags: int) -> list[str]:
        """Return the strings that tags point to, in order."""
        return [self.text(offset) for offset in self.values(*tags)]

    def text(self, offset: int) -> str:
        """Return a string of the dynamic section; bytes that are not UTF-8 become escapes."""
        table = self.table(DT_STRTAB, DT_STRSZ)[offset : offset + _MAX_STRING]
        found, end, _ = bytes(table).partition(b"\0")
        if not end:
            what = f"string at {offset:#x}, expected one that ends with a NUL"
            raise self.error(f"dynamic section: {what}")
        return found.decode("utf-8", "backslashreplace")

    def table(self, address_tag: int, size_tag: int, where: str = "table") -> memoryview:
        """Return the bytes of a table that two tags describe; empty if the tags are absent."""
        address, nbytes = self.value(address_tag), self.value(size_tag)
        return self.at(address, nbytes, where) if nbytes else memoryview(b"")

    def relocation_tables(self) -> Iterator[memoryview]:
        """Iterate over the tables of relocations with an addend, both of whole entries."""
        for tags in ((DT_RELA, DT_RELASZ, "DT_RELA"), (DT_JMPREL, DT_PLTRELSZ, "DT_JMPREL")):
            yield _whole(self.table(*tags), RELOCATION.size)

    def num_symbols(self) -> int:
        """Count the dynamic symbols that a look-up finds or a relocation names."""
        if not self.values(DT_SYMTAB):
            return 0
        named = (table.cast("I")[3::6].tolist() for table in self.relocation_tables())
        counts = [max(numbers, default=0) + 1 for numbers in named]
        headers = [self.at(address, 8, "DT_HASH") for address in self.values(DT_HASH)]
        counts += [int.from_bytes(header[4:], "little") for header in headers]  # nchain
        counts += [self._num_hashed(address) for address in self.values(DT_GNU_HASH)]
        return max(counts)

    def _num_hashed(self, address: int) -> int:
        """Return one more than the last symbol of all chains; 0 if all are empty."""
        header = self.at(address, 16, "DT_GNU_HASH").cast("I")
        num_buckets, first, num_words, _ = header.tolist()
        buckets = address + 16 + 8 * num_words
        last = max(self.at(buckets, 4 * num_buckets, "DT_GNU_HASH").cast("I"), default=0)
        if last < first:
            return 0
        chains = self.rest_at(buckets + 4 * (num_buckets + last - first), "DT_GNU_HASH")
        for index, word in enumerate(_whole(chains, 4).cast("I")[:_MAX_CHAIN], last):
            if word & 1:
                return index + 1
        raise self.error("DT_GNU_HASH: a chain without an end, expected one in its segment")

    # ---- the program headers

    def _read_segments(self) -> Iterator[Segment]:
        start, size, count = self._header[5], self._header[9], self._header[10]
        if size != PROGRAM_HEADER.size or count > _MAX_SEGMENTS:
            text = f"program headers, expected at most {_MAX_SEGMENTS} of {PROGRAM_HEADER.size}"
            raise self.error(f"ELF header: {text} bytes, found {count} of {size} bytes")
        table = self.slice(start, count * size, "program headers")
        for kind, flags, offset, address, _, nbytes, memory, _ in PROGRAM_HEADER.iter_unpack(table):
            yield Segment(kind, flags, offset, address, nbytes, memory)


def occurrences(data: bytes, text: bytes) -> Iterator[int]:
    """Iterate over the offsets at which a text occurs."""
    at = data.find(text)
    while at >= 0:
        yield at
        at = data.find(text, at + 1)


def _whole(data: memoryview, size: int) -> memoryview:
    return data[: len(data) // size * size]
