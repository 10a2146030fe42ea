"""Where object files need a symbol: read from their relocations."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Set
from pathlib import Path
from struct import Struct

from runtime.error import ExportError

from . import structures as elf
from .archive import MAGIC, read_archive
from .object_file import ObjectTables, reporting_object, string_at

_RELA = Struct("<QII8x")  # the place, the type, the symbol


def references(path: Path, names: Set[str]) -> dict[str, str]:
    """Return the function, else the section, of an object or archive that first needs a symbol.

    A file that is neither, or that is damaged, needs none. The objects of link-time optimisation
    have no relocations: there the place is "".
    """
    found: dict[str, str] = {}
    try:
        with path.open("rb") as file, reporting_object(path, path.name):
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            for start, nbytes in _objects(path, data):
                for name, place in _of_object(memoryview(data)[start : start + nbytes], names):
                    found.setdefault(name, place)
            others = (name for name in names - found.keys() if _contains(data, name))
            found.update(dict.fromkeys(others, ""))
    except (OSError, ExportError):
        return found
    return found


def _objects(path: Path, data: mmap.mmap) -> Iterator[tuple[int, int]]:
    if data[: len(MAGIC)] != MAGIC:
        yield 0, len(data)
        return
    for member in read_archive(path):
        yield member.offset, member.nbytes


def _of_object(data: memoryview, names: Set[str]) -> Iterator[tuple[str, str]]:
    tables = ObjectTables(data)
    wanted = {
        index: name
        for index, symbol in enumerate(tables.symbols)
        if symbol.st_shndx == elf.SHN_UNDEF and (name := tables.name_of(symbol)) in names
    }
    for section in tables.sections if wanted else ():
        if section.sh_type != elf.SHT_RELA or section.sh_info >= len(tables.sections):
            continue
        place = tables.sections[section.sh_info]
        if place.sh_flags & elf.SHF_ALLOC:
            rows = data[section.sh_offset : section.sh_offset + section.sh_size]
            for offset, _, index in _RELA.iter_unpack(rows[: len(rows) // 24 * 24]):
                if index in wanted:
                    yield wanted[index], _place(tables, data, section.sh_info, offset)


def _place(tables: ObjectTables, data: memoryview, section: int, offset: int) -> str:
    """Return the name of the function or variable at an offset of a section, else the section."""
    for symbol in tables.symbols:
        is_inside = symbol.st_value <= offset < symbol.st_value + symbol.st_size
        if symbol.st_shndx == section and is_inside:
            return tables.name_of(symbol).partition(".")[0]
    texts = tables.sections[tables.header.e_shstrndx]
    strings = bytes(data[texts.sh_offset : texts.sh_offset + texts.sh_size])
    return string_at(strings, tables.sections[section].sh_name)


def _contains(data: mmap.mmap, name: str) -> bool:
    return data.find(b"\0" + name.encode("utf-8", "surrogateescape") + b"\0") >= 0
