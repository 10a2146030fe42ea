"""An ELF-64 poker for tests: find one field of a good library by its gABI name, overwrite it."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

# gABI, chapters 4 and 5: the records' fields in order.
RECORDS = {
    "header": "16s:e_ident H:e_type H:e_machine I:e_version Q:e_entry Q:e_phoff Q:e_shoff "
    "I:e_flags H:e_ehsize H:e_phentsize H:e_phnum H:e_shentsize H:e_shnum H:e_shstrndx",
    "program": "I:p_type I:p_flags Q:p_offset Q:p_vaddr Q:p_paddr Q:p_filesz Q:p_memsz Q:p_align",
    "section": "I:sh_name I:sh_type Q:sh_flags Q:sh_addr Q:sh_offset Q:sh_size I:sh_link I:sh_info "
    "Q:sh_addralign Q:sh_entsize",
    "dynamic": "Q:d_tag Q:d_val",
    "symbol": "I:st_name B:st_info B:st_other H:st_shndx Q:st_value Q:st_size",
    "rela": "Q:r_offset I:r_type I:r_symbol Q:r_addend",
    "gnu_hash": "I:num_buckets I:symbol_offset I:bloom_size I:bloom_shift",
    "sysv_hash": "I:num_buckets I:num_chains",
    "verneed": "H:vn_version H:vn_cnt I:vn_file I:vn_aux I:vn_next",
    "verdef": "H:vd_version H:vd_flags H:vd_ndx H:vd_cnt I:vd_hash I:vd_aux I:vd_next",
    "u64": "Q:word",
    "u32": "I:word",
    "u16": "H:word",
    "u8": "B:word",
}
SIZES = {
    kind: struct.calcsize("<" + "".join(field.split(":")[0] for field in fields.split()))
    for kind, fields in RECORDS.items()
}

PT = {"LOAD": 1, "DYNAMIC": 2, "NOTE": 4, "PHDR": 6, "TLS": 7, "EH_FRAME": 0x6474E550}
PT |= {"STACK": 0x6474E551, "RELRO": 0x6474E552}
DT = {
    "NULL": 0, "NEEDED": 1, "PLTRELSZ": 2, "PLTGOT": 3, "HASH": 4, "STRTAB": 5, "SYMTAB": 6,
    "RELA": 7, "RELASZ": 8, "RELAENT": 9, "STRSZ": 10, "SYMENT": 11, "INIT": 12, "FINI": 13,
    "SONAME": 14, "PLTREL": 20, "TEXTREL": 22, "JMPREL": 23, "INIT_ARRAY": 25, "FINI_ARRAY": 26,
"INIT_ARRAYSZ": 27, "FINI_ARRAYSZ": 28, "RUNPATH": 29, "FLAGS": 30, "RELRSZ": 35, "RELR": 36,
    "RELRENT": 37, "GNU_HASH": 0x6FFFFEF5, "VERSYM": 0x6FFFFFF0, "RELACOUNT": 0x6FFFFFF9,
    "FLAGS_1": 0x6FFFFFFB, "VERDEF": 0x6FFFFFFC, "VERNEED": 0x6FFFFFFE,
}  # fmt: skip
SHT = {"PROGBITS": 1, "STRTAB": 3, "DYNAMIC": 6, "NOBITS": 8, "DYNSYM": 11}


class Record(NamedTuple):
    """One structure of the file: its kind and its offset."""

    kind: str
    offset: int


class Elf:
    """The bytes of a library, and the places of its records."""

    def __init__(self, data: bytes) -> None:
        self.data = bytearray(data)

    def _field(self, record: Record, name: str) -> tuple[str, int]:
        offset = record.offset
        for field in RECORDS[record.kind].split():
            code, field_name = field.split(":")
            if field_name == name:
                return "<" + code, offset
            offset += struct.calcsize("<" + code)
        raise KeyError(name)

    def peek(self, record: Record, field: str) -> int:
        """Read one field."""
        code, offset = self._field(record, field)
        return int(struct.unpack_from(code, self.data, offset)[0])

    def poke(self, record: Record, field: str, value: int) -> Elf:
        """Overwrite one field."""
        code, offset = self._field(record, field)
        struct.pack_into(code, self.data, offset, value)
        return self

    @property
    def header(self) -> Record:
        """The ELF header."""
        return Record("header", 0)

    def programs(self, name: str) -> list[Record]:
        """All program headers of a type."""
        start, count = self.peek(self.header, "e_phoff"), self.peek(self.header, "e_phnum")
        records = [Record("program", start + i * SIZES["program"]) for i in range(count)]
        return [record for record in records if self.peek(record, "p_type") == PT[name]]

    def program(self, name: str, nth: int = 0) -> Record:
        """The nth program header of a type."""
        return self.programs(name)[nth]

    def load(self, flags: int) -> Record:
        """The first PT_LOAD with exactly these p_flags: 4 R, 5 RX, 6 RW."""
        return next(r for r in self.programs("LOAD") if self.peek(r, "p_flags") == flags)

    def section(self, name: str, nth: int = 0) -> Record:
        """The nth section header of a type."""
        start, count = self.peek(self.header, "e_shoff"), self.peek(self.header, "e_shnum")
        records = [Record("section", start + i * SIZES["section"]) for i in range(count)]
        return [r for r in records if self.peek(r, "sh_type") == SHT[name]][nth]

    def _entries(self) -> Iterator[Record]:
        offset = self.peek(self.program("DYNAMIC"), "p_offset")
        while True:
            yield Record("dynamic", offset)
            if self.peek(Record("dynamic", offset), "d_tag") == DT["NULL"]:
                return
            offset += SIZES["dynamic"]

    def tag(self, name: str) -> Record:
        """The first entry of the dynamic section with this tag."""
        return next(r for r in self._entries() if self.peek(r, "d_tag") == DT[name])

    def at(self, kind: str, address: int) -> Record:
        """The record at a link-time address."""
        for load in self.programs("LOAD"):
            delta = address - self.peek(load, "p_vaddr")
            if 0 <= delta < self.peek(load, "p_filesz"):
                return Record(kind, self.peek(load, "p_offset") + delta)
        raise KeyError(hex(address))

    def table(self, kind: str, tag: str, nth: int = 0) -> Record:
        """The nth record of the table that a tag points to."""
        start = self.at(kind, self.peek(self.tag(tag), "d_val"))
        return Record(kind, start.offset + nth * SIZES[kind])

    def _name(self, offset: int) -> bytes:
        start = self.table("u8", "STRTAB").offset + offset
        return bytes(self.data[start : self.data.index(0, start)])

    def symbol_index(self, name: str) -> int:
        """The index of a dynamic symbol."""
        wanted, index = name.encode(), 1
        while self._name(self.peek(self.table("symbol", "SYMTAB", index), "st_name")) != wanted:
            index += 1
        return index

    def symbol(self, name: str) -> Record:
        """A dynamic symbol."""
        return self.table("symbol", "SYMTAB", self.symbol_index(name))

    def rela(self, r_type: int) -> Record:
        """The first relocation of a type."""
        for tag, size_tag in (("RELA", "RELASZ"), ("JMPREL", "PLTRELSZ")):
            count = self.peek(self.tag(size_tag), "d_val") // SIZES["rela"]
            for record in (self.table("rela", tag, i) for i in range(count)):
                if self.peek(record, "r_type") == r_type:
                    return record
        raise KeyError(r_type)
