"""The regions of a library's bytes: segments, headers, sections, the blob and its entries."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from runtime import abi
from runtime.error import LibraryLoadError

from ...elf.section_table import read_sections
from ...elf.structures import PF_W, PF_X, PT_LOAD, SHT_NOBITS
from .region import Region, fill, group, nest
from .section_names import ABOUT, role_of

if TYPE_CHECKING:
    from ...elf.image import Image
    from .. import LibraryReport

# Levels: a region is inside regions of a lower level only.
_FILE, _SEGMENT, _SECTION, _DATA, _ENTRY = range(5)
_MAX_SECTIONS = 20_000
_MAX_FACTS = 1_000
_MAX_PADDING = 1 << 16


def lay_out(image: Image, report: LibraryReport) -> Region:
    """Return the file as a tree of regions: segments, and inside them sections and blob.

    Regions of a level do not overlap, and the children of a region fill it.
    """
    file = Region(Path(report.path).name, "file", "loaded", _FILE, 0, len(image.data))
    regions = [*_segments(image), *_headers(image), *_sections(image)]
    regions += [*_facts(image, report), *_blob(report)]
    nest(file, regions)
    fill(file, partial(_between, image))
    group(file)
    return file


def _segments(image: Image) -> Iterator[Region]:
    for index, segment in enumerate(image.segments):
        if segment.type == PT_LOAD:
            x, w = segment.flags & PF_X, segment.flags & PF_W
            role = "code" if x else "variables" if w else "constants"
            about = f"Mapped at address {segment.address:#x}: read"
            about += f"{', write' if w else ''}{', execute' if x else ''}."
            name = f"LOAD R{'W' if w else ''}{'E' if x else ''}"
            place = (segment.offset, segment.nbytes)
            yield Region(name, f"segment {index}", role, _SEGMENT, *place, about)


def _headers(image: Image) -> Iterator[Region]:
    header = image.header
    yield Region("ELF header", "header", "linking", _SECTION, 0, header.e_ehsize)
    rows = (
        ("program headers", header.e_phoff, header.e_phnum * header.e_phentsize),
        ("section headers", header.e_shoff, header.e_shnum * header.e_shentsize),
    )
    for name, offset, nbytes in rows:
        role = "linking" if name == "program headers" else "not loaded"
        yield Region(name, "header", role, _SECTION, offset, nbytes)


def _sections(image: Image) -> Iterator[Region]:
    try:
        sections = read_sections(image)
    except LibraryLoadError:
        return  # the report says why
    for index, section in enumerate(sections[:_MAX_SECTIONS]):
        if index and section.type != SHT_NOBITS:
            name = section.name or f"section {index}"
            role, about = role_of(section), ABOUT.get(section.name, "")
            place = (section.offset, section.nbytes)
            yield Region(name, "section", role, _SECTION, *place, about)


def _facts(image: Image, report: LibraryReport) -> Iterator[Region]:
    """Return the data symbols of packer; in a damaged file, they may be outside of it."""
    symbols = report.symbols.dynamic
    for symbol in islice(symbols.beginning_with("__packer_"), _MAX_FACTS):
        try:
            offset = image.offset_of(symbol.address, symbol.size, symbol.name)
        except LibraryLoadError:
            continue
        name, about = symbol.name, ""
        if name == abi.MANIFEST:
            about = "JSON: the producer of the library, and the place of each blob entry."
        elif name == abi.LIBRARY_METADATA:
            about = "JSON: the version and license of the library, and further values."
        elif name == abi.CHECKSUMS:
            about = "Text: the exported symbols and the CRC-32 of their bytes."
        elif name == abi.SBOM:
            about = "JSON: the bill of materials, CycloneDX."
        elif name == abi.BUNDLE:
            about = "JSON: the signature of the file, then zeros; or zeros."
        elif name.startswith(abi.FACT_PREFIX):
            about = "Text: the signature of the function, and its documentation."
        yield Region(name, "symbol", "tree", _DATA, offset, symbol.size, about)


def _blob(report: LibraryReport) -> Iterator[Region]:
    blob = report.blob
    if blob is None or blob.offset is None:
        return
    about = "The import tree: the contents of all modules except the library itself."
    yield Region(blob.symbol, "blob", "tree", _DATA, blob.offset, blob.nbytes, about)
    start = blob.offset + abi.HEADER_NBYTES
    for index, entry in enumerate(blob.entries):
        place = (start + entry.offset, entry.nbytes)
        yield Region(entry.key, "blob entry", "tree", _ENTRY, *place, entry=index)


def _between(image: Image, parent: Region, start: int, end: int) -> Region:
    """Name the bytes between the regions of one level."""
    place = (parent.level + 1, start, end - start)
    if parent.kind == "blob":
        about = "The number of bytes that follow, and the number of entries (u64 each)."
        return Region("counts", "header", "tree", *place, about)
    if not bytes(image.data[start : min(end, start + _MAX_PADDING)]).strip(b"\0"):
        return Region(
            "padding", "zeros", "padding", *place, "Zeros, so that the next region is aligned."
        )
    role = parent.role if parent.level == _SECTION else "not loaded"
    return Region("unnamed", "bytes", role, *place, "Bytes of unknown purpose.")
