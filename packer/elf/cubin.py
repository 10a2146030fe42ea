"""The kernels of a cubin: an ELF file with machine code for NVIDIA's devices.

A cubin has the sizes of a kernel's parameters, not their types: section ``.nv.info.<kernel>`` has
an entry for each parameter.

    u8 format (4: u16 bytes of the value, then the value; otherwise a value of two bytes), u8 kind
    value of kind 0x17: u32 index, u16 ordinal, u16 offset, u32 with the size in its high 14 bits
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from . import structures as elf
from .structures import Header, SectionHeader, SymbolEntry, size_of, unpack

_HEADER_NBYTES = size_of(Header)
_INFO = b".nv.info."
_SIZED, _PARAMETER = 4, 0x17
_PARAMETER_VALUE = struct.Struct("<IHHI")
_MAX_SECTIONS = 1 << 16
_IS_ENTRY = 0x10  # of st_other


def cubin_kernels(data: memoryview) -> dict[str, tuple[int, ...]]:
    """Return the kernels of a cubin, each with the sizes of its parameters; {} if it has none.

    A damaged cubin gives the kernels that can be read.
    """
    try:
        sections = _sections(data)
        names = _names(data, sections)
        symbols = next(s for s in sections if s.sh_type == elf.SHT_SYMTAB)
        strings = _bytes(data, sections[symbols.sh_link])
        entries = [
            _text(strings, symbol.st_name)
            for symbol in unpack(SymbolEntry, _bytes(data, symbols))
            if symbol.st_info & 15 == elf.STT_FUNC and symbol.st_other & _IS_ENTRY
        ]
        return {
            name.decode("utf-8", "replace"): tuple(_sizes(data, names.get(_INFO + name)))
            for name in entries
        }
    except (ValueError, IndexError, StopIteration, struct.error):
        return {}


def _sections(data: memoryview) -> list[SectionHeader]:
    (header,) = unpack(Header, bytes(data[:_HEADER_NBYTES]))
    count = min(header.e_shnum, _MAX_SECTIONS)
    end = header.e_shoff + count * size_of(SectionHeader)
    return unpack(SectionHeader, bytes(data[header.e_shoff : end]))


def _names(data: memoryview, sections: list[SectionHeader]) -> dict[bytes, SectionHeader]:
    (header,) = unpack(Header, bytes(data[:_HEADER_NBYTES]))
    strings = _bytes(data, sections[header.e_shstrndx])
    return {_text(strings, section.sh_name): section for section in sections}


def _bytes(data: memoryview, section: SectionHeader) -> bytes:
    return bytes(data[section.sh_offset : section.sh_offset + section.sh_size])


def _text(strings: bytes, offset: int) -> bytes:
    return strings[offset : max(strings.find(b"\0", offset), offset)]


def _sizes(data: memoryview, section: SectionHeader | None) -> Iterator[int]:
    """Yield the sizes of a kernel's parameters, in order."""
    found = dict(_parameters(_bytes(data, section))) if section is not None else {}
    yield from (found[ordinal] for ordinal in sorted(found))


def _parameters(info: bytes) -> Iterator[tuple[int, int]]:
    place = 0
    while place + 4 <= len(info):
        form, kind, nbytes = struct.unpack_from("<BBH", info, place)
        place += 4
        if form != _SIZED:
            continue
        if kind == _PARAMETER and nbytes == _PARAMETER_VALUE.size:
            _, ordinal, _, packed = _PARAMETER_VALUE.unpack_from(info, place)
            yield ordinal, packed >> 18
        place += nbytes
