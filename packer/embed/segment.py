"""Embedder ``segment``: the bytes in a separate read-only PT_LOAD, written after the link.

The linker gets an object that reserves a place for them (`placeholder`). In the linked library

    PT_NOTE of .note.packer   becomes the PT_LOAD, after the last one: no table moves or grows
    .packer.blob              its header and its symbols are changed to refer to the segment
    end of the file           the bytes are appended, from the next page on

so an export takes as long as a copy of the bytes, and does not hold them in memory. A page is the
largest of the machine. Only symbols refer to the segment, so its distance does not matter.
"""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ..elf import structures as elf
from ..elf.structures import (
    Header,
    ProgramHeader,
    SectionHeader,
    SymbolEntry,
    align_up,
    pack,
    size_of,
    unpack,
)
from ..files.chunks import join, nbytes_of
from ..machine import page_nbytes_of
from ..target import find_target
from .ahead import LARGE, LEAD, Ahead, copying_ahead
from .copy import write_chunks
from .placeholder import (
    NOTE,
    NOTE_ALIGNMENT,
    NOTE_SECTION,
    SECTION,
    placeholder_object,
)

if TYPE_CHECKING:
    from runtime.serial.stream import Chunk

    from .copy import Progress

    Edit = tuple[int, bytes]  # file offset, new bytes

ALIGNMENT = 64


class NotPlacedError(Exception):
    """The linker did not keep the placeholder; another embedder needs none."""


class _Linked(NamedTuple):
    """The tables of a linked library, and the indices of the placeholder in them."""

    header: Header
    programs: list[ProgramHeader]
    sections: list[SectionHeader]
    spare: int
    section: int
    note: int
    nbytes: int


def prepare(
    symbols: Mapping[str, Sequence[Chunk]], folder: Path, triple: str | None, register: str = ""
) -> Path:
    """Write ``devc.o``, which reserves a place for the bytes; return its path."""
    assert not register, "a system library refers to its bytes, so they cannot be placed later"
    path = folder / "devc.o"
    path.write_bytes(placeholder_object(symbols, find_target(triple).machine))
    return path


def copy_ahead(
    path: Path, symbols: Mapping[str, Sequence[Chunk]]
) -> contextlib.AbstractContextManager[Ahead | None]:
    """Start to copy the bytes, if they are many, before the library is linked."""
    return copying_ahead(path, join(symbols, ALIGNMENT).chunks)


def place(
    library: Path,
    symbols: Mapping[str, Sequence[Chunk]],
    report: Progress,
    ahead: Ahead | None = None,
) -> None:
    """Write the bytes into a library that was linked with the placeholder.

    The library is rewritten in place, or replaced by a copy that was started `ahead`. `report` is
    called with (bytes done, bytes in all). Raises NotPlacedError if the linker dropped or merged
    the placeholder; then the library is unchanged. Raises ExportError and OSError as
    `copy.write_chunks` does.
    """
    contents = join(symbols, ALIGNMENT)
    places = dict(zip(symbols, contents.places, strict=True))
    descriptor = os.open(library, os.O_RDWR | os.O_CLOEXEC)
    try:
        try:
            linked = _read(descriptor)
            segment = _segment(linked, nbytes_of(contents.chunks))
            edits = [
                *_header_edits(linked, segment),
                *_symbol_edits(descriptor, linked, segment, places),
            ]
        except (struct.error, ValueError, LookupError) as error:
            raise NotPlacedError("the linker wrote no section headers, or unusual ones") from error
        # From here on all edits are known; nothing is written yet.
        for offset, data in edits:
            os.pwrite(descriptor, data, offset)
        if ahead is not None and segment.p_offset == LEAD:
            code = os.pread(descriptor, linked.nbytes, 0)
            ahead.finish(code, report)
            library.unlink()  # ext4 flushes a file that is renamed over another (auto_da_alloc)
            os.rename(ahead.path, library)
            return
        if ahead is not None:
            ahead.stop()
        os.ftruncate(descriptor, segment.p_offset + segment.p_filesz)
        write_chunks(descriptor, segment.p_offset, contents.chunks, report)
    finally:
        os.close(descriptor)


def replace(library: Path, symbols: Mapping[str, Sequence[Chunk]], report: Progress) -> None:
    """Write other bytes of the same symbols into a library that has them by `place`.

    Raises ExportError and OSError as `copy.write_chunks` does.
    """
    contents = join(symbols, ALIGNMENT)
    places, nbytes = dict(zip(symbols, contents.places, strict=True)), nbytes_of(contents.chunks)
    descriptor = os.open(library, os.O_RDWR | os.O_CLOEXEC)
    try:
        header, programs, sections = _tables(descriptor)
        names = _contents(descriptor, sections[header.e_shstrndx])
        linked = _Linked(
            header, programs, sections, 0, _find_section(sections, names, SECTION), 0, 0
        )
        start = sections[linked.section].sh_offset
        segment = next(p for p in programs if p.p_type == elf.PT_LOAD and p.p_offset == start)
        larger = segment._replace(p_filesz=nbytes, p_memsz=nbytes)
        programs[programs.index(segment)] = larger
        edits = [
            (header.e_phoff, pack(programs)),
            _section_edit(linked, linked.section, sh_size=nbytes),
            *_symbol_edits(descriptor, linked, larger, places),
        ]
        for offset, data in edits:
            os.pwrite(descriptor, data, offset)
        os.ftruncate(descriptor, start + nbytes)
        write_chunks(descriptor, start, contents.chunks, report)
    finally:
        os.close(descriptor)


def _tables(descriptor: int) -> tuple[Header, list[ProgramHeader], list[SectionHeader]]:
    (header,) = unpack(Header, os.pread(descriptor, size_of(Header), 0))
    size = header.e_phnum * size_of(ProgramHeader)
    programs = unpack(ProgramHeader, os.pread(descriptor, size, header.e_phoff))
    size = header.e_shnum * size_of(SectionHeader)
    return header, programs, unpack(SectionHeader, os.pread(descriptor, size, header.e_shoff))


def _read(descriptor: int) -> _Linked:
    header, programs, sections = _tables(descriptor)
    names = _contents(descriptor, sections[header.e_shstrndx])
    return _Linked(
        header,
        programs,
        sections,
        _find_spare(descriptor, programs),
        _find_section(sections, names, SECTION),
        _find_section(sections, names, NOTE_SECTION),
        os.fstat(descriptor).st_size,
    )


def _contents(descriptor: int, section: SectionHeader) -> bytes:
    return os.pread(descriptor, section.sh_size, section.sh_offset)


def _find_spare(descriptor: int, programs: Sequence[ProgramHeader]) -> int:
    """Return the program header to replace: our note's or, if notes share it, PT_PHDR.

    mold puts all notes into one PT_NOTE, which debuggers need for the build id. PT_PHDR is
    optional: without it a loader uses the ELF header, and GNU ld writes none for libraries.
    """
    for index, program in enumerate(programs):
        if program.p_type == elf.PT_NOTE and NOTE in os.pread(
            descriptor, program.p_filesz, program.p_offset
        ):
            types = [program.p_type for program in programs]
            is_shared = program.p_filesz > len(NOTE) and elf.PT_PHDR in types
            return types.index(elf.PT_PHDR) if is_shared else index
    raise NotPlacedError("the linker wrote no PT_NOTE for section .note.packer")


def _find_section(sections: Sequence[SectionHeader], names: bytes, name: str) -> int:
    wanted = name.encode() + b"\0"
    for index, section in enumerate(sections):
        if names.startswith(wanted, section.sh_name):
            return index
    raise NotPlacedError(f"the linker wrote no section {name}")


def _segment(linked: _Linked, nbytes: int) -> ProgramHeader:
    """Return the new PT_LOAD: above all others in memory, at the end of the file."""
    loads = [program for program in linked.programs if program.p_type == elf.PT_LOAD]
    page = page_nbytes_of(linked.header.e_machine)
    address = align_up(max(load.p_vaddr + load.p_memsz for load in loads), page)
    lead = LEAD if nbytes >= LARGE else 0  # the same with and without a copy ahead
    offset = align_up(max(linked.nbytes, lead), page)
    return ProgramHeader(elf.PT_LOAD, elf.PF_R, offset, address, address, nbytes, nbytes, page)


def _header_edits(linked: _Linked, segment: ProgramHeader) -> Iterator[Edit]:
    """Replace a program header; the gABI requires PT_LOAD in ascending order."""
    programs = [_aligned_note(program) for program in linked.programs]
    del programs[linked.spare]
    last = max(i for i, program in enumerate(programs) if program.p_type == elf.PT_LOAD)
    programs.insert(last + 1, segment)
    yield linked.header.e_phoff, pack(programs)
    yield _section_edit(
        linked,
        linked.section,
        sh_addr=segment.p_vaddr,
        sh_offset=segment.p_offset,
        sh_size=segment.p_filesz,
    )
    yield _section_edit(linked, linked.note, sh_addralign=8)


def _aligned_note(program: ProgramHeader) -> ProgramHeader:
    """Restore alignment 4, that of the build id, if the linker merged our note with others."""
    is_ours = program.p_type == elf.PT_NOTE and program.p_align == NOTE_ALIGNMENT
    return program._replace(p_align=4) if is_ours else program


def _section_edit(linked: _Linked, index: int, **fields: int) -> Edit:
    section = linked.sections[index]._replace(**fields)
    return linked.header.e_shoff + index * size_of(SectionHeader), pack([section])


def _symbol_edits(
    descriptor: int,
    linked: _Linked,
    segment: ProgramHeader,
    places: Mapping[str, tuple[int, int]],
) -> Iterator[Edit]:
    """Move the symbols of the section to their places in the segment; a section symbol keeps 0."""
    for section in linked.sections:
        if section.sh_type not in (elf.SHT_DYNSYM, elf.SHT_SYMTAB):
            continue
        names = _contents(descriptor, linked.sections[section.sh_link])
        for index, symbol in enumerate(unpack(SymbolEntry, _contents(descriptor, section))):
            if symbol.st_shndx != linked.section:
                continue
            name = names[symbol.st_name : names.index(0, symbol.st_name)].decode()
            # A linker may add the version of a symbol to its name in .symtab.
            start, nbytes = places[name.partition("@")[0]] if symbol.st_size else (0, 0)
            moved = symbol._replace(st_value=segment.p_vaddr + start, st_size=nbytes)
            yield section.sh_offset + index * size_of(SymbolEntry), pack([moved])
