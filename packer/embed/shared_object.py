"""A whole shared object that contains only bytes, written without compiler and linker.

    address   file       what
    0         0          ELF header, program headers, .hash, .dynsym, .dynstr, .dynamic   RW
    -         then       .shstrtab, section headers
    a page    a page     .packer.blob                                                     R

A page is the largest of the machine. .dynamic is writable, since older C libraries write to it.
It has no separate PT_LOAD, and there is no PT_GNU_RELRO: once patchelf has moved .dynamic, strip
would make such segments unusable. The file contains no code.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from struct import Struct
from typing import TYPE_CHECKING, NamedTuple

from ..elf import structures as elf
from ..elf.structures import (
    DynamicTag,
    Header,
    ProgramHeader,
    SectionHeader,
    Strings,
    SymbolEntry,
    align_up,
    make_header,
    pack,
    size_of,
    symbol_info,
)
from ..files.chunks import Contents, join, nbytes_of
from ..target import find_target
from .copy import write_chunks
from .placeholder import SECTION
from .section_layout import PlannedSection, lay_out
from .segment import ALIGNMENT

if TYPE_CHECKING:
    from runtime.serial.stream import Chunk

    from ..machine import Machine
    from .copy import Progress

_NUM_PROGRAMS = 4
_NUM_TAGS = 6
_HASH, _DYNSYM, _DYNSTR, _DYNAMIC, _BLOB = range(1, 6)  # section indexes


def write_library(
    library: Path,
    symbols: Mapping[str, Sequence[Chunk]],
    triple: str | None,
    soname: str | None,
    report: Progress,
) -> None:
    """Write a new library that defines data symbols and contains no code.

    Raises ExportError and OSError as `copy.write_chunks` does.
    """
    contents = join(symbols, ALIGNMENT)
    machine = find_target(triple).machine
    head = _head(_Names(list(symbols), soname), contents, machine)
    descriptor = os.open(library, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o777)
    try:
        offset = align_up(len(head), machine.page_nbytes)
        os.ftruncate(descriptor, offset + nbytes_of(contents.chunks))
        os.pwrite(descriptor, head, 0)
        write_chunks(descriptor, offset, contents.chunks, report)
    finally:
        os.close(descriptor)


class _Names(NamedTuple):
    """The dynamic string table: the names of the symbols, and last the SONAME, if there is one."""

    symbols: Sequence[str]
    soname: str | None

    @property
    def soname_tags(self) -> list[DynamicTag]:
        if self.soname is None:
            return []
        strings = Strings()
        for name in self.symbols:
            strings.add(name)
        return [DynamicTag(elf.DT_SONAME, strings.add(self.soname))]


def _head(names: _Names, contents: Contents, machine: Machine) -> bytes:
    """Return everything that precedes the bytes."""
    unknown = bytes((_NUM_TAGS + len(names.soname_tags)) * size_of(DynamicTag))
    start = size_of(Header) + _NUM_PROGRAMS * size_of(ProgramHeader)
    # A first pass without values finds the offsets of the tables and, a page later, of the bytes.
    headers, body = lay_out(_sections(names, contents, 0, unknown), start)
    shoff = start + len(body)
    offset = align_up(shoff + len(headers) * size_of(SectionHeader), machine.page_nbytes)
    tags = [*names.soname_tags, *_dynamic_entries(headers)]
    headers, body = lay_out(_sections(names, contents, offset, pack(tags)), start)
    headers = _with_addresses(headers, offset, nbytes_of(contents.chunks))
    programs = _programs(headers, machine.page_nbytes)
    header = make_header(
        elf.ET_DYN, machine, num_programs=len(programs), shoff=shoff, num_sections=len(headers)
    )
    return pack([header]) + pack(programs) + body + pack(headers)


def _symbols(
    names: Sequence[str], strings: Strings, contents: Contents, address: int
) -> list[SymbolEntry]:
    info = symbol_info(elf.STB_GLOBAL, elf.STT_OBJECT)
    return [SymbolEntry()] + [
        SymbolEntry(strings.add(name), info, 0, _BLOB, address + offset, nbytes)
        for name, (offset, nbytes) in zip(names, contents.places, strict=True)
    ]


def _sections(
    names: _Names, contents: Contents, address: int, dynamic: bytes
) -> list[PlannedSection]:
    strings = Strings()
    symbols = _symbols(names.symbols, strings, contents, address)
    if names.soname is not None:
        strings.add(names.soname)
    load, symbol, tag = elf.SHF_ALLOC, size_of(SymbolEntry), size_of(DynamicTag)
    return [
        PlannedSection(".hash", elf.SHT_HASH, _hash_table(len(symbols)), load, _DYNSYM, 0, 8, 4),
        PlannedSection(".dynsym", elf.SHT_DYNSYM, pack(symbols), load, _DYNSTR, 1, 8, symbol),
        PlannedSection(".dynstr", elf.SHT_STRTAB, strings.data, load),
        PlannedSection(
            ".dynamic", elf.SHT_DYNAMIC, dynamic, load | elf.SHF_WRITE, _DYNSTR, 0, 8, tag
        ),
        PlannedSection(SECTION, elf.SHT_PROGBITS, b"", load, align=ALIGNMENT),
    ]


def _hash_table(num_symbols: int) -> bytes:
    """One chain through all symbols (gABI, Hash Table): nbucket, nchain, the bucket, the chain."""
    chain = [0, *range(2, num_symbols), 0]
    return Struct(f"<{3 + num_symbols}I").pack(1, num_symbols, 1, *chain)


def _dynamic_entries(headers: Sequence[SectionHeader]) -> list[DynamicTag]:
    return [
        DynamicTag(elf.DT_HASH, headers[_HASH].sh_offset),
        DynamicTag(elf.DT_STRTAB, headers[_DYNSTR].sh_offset),
        DynamicTag(elf.DT_SYMTAB, headers[_DYNSYM].sh_offset),
        DynamicTag(elf.DT_STRSZ, headers[_DYNSTR].sh_size),
        DynamicTag(elf.DT_SYMENT, size_of(SymbolEntry)),
        DynamicTag(elf.DT_NULL, 0),
    ]


def _with_addresses(
    headers: Sequence[SectionHeader], offset: int, nbytes: int
) -> list[SectionHeader]:
    """Set the address of each loaded section to its offset in the file."""
    null, *tables, blob, names = headers
    return [
        null,
        *(table._replace(sh_addr=table.sh_offset) for table in tables),
        blob._replace(sh_addr=offset, sh_offset=offset, sh_size=nbytes),
        names,
    ]


def _programs(headers: Sequence[SectionHeader], page: int) -> list[ProgramHeader]:
    dynamic, blob = headers[_DYNAMIC], headers[_BLOB]
    at, nbytes = dynamic.sh_offset, dynamic.sh_size
    offset, address, size = blob.sh_offset, blob.sh_addr, blob.sh_size
    end = at + nbytes
    return [
        ProgramHeader(elf.PT_LOAD, elf.PF_R | elf.PF_W, 0, 0, 0, end, end, page),
        ProgramHeader(elf.PT_LOAD, elf.PF_R, offset, address, address, size, size, page),
        ProgramHeader(elf.PT_DYNAMIC, elf.PF_R | elf.PF_W, at, at, at, nbytes, nbytes, 8),
        ProgramHeader(elf.PT_GNU_STACK, elf.PF_R | elf.PF_W, 0, 0, 0, 0, 0, 16),
    ]
