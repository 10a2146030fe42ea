"""The long lists of a report as text: symbols, the blob's entries, and sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import prod
from typing import TYPE_CHECKING, Any, Literal

from runtime.abi import HEADER_NBYTES

from .drawing import Line, Span, line, table
from .meaning import meaning_of
from .report import title_of

if TYPE_CHECKING:
    import re

    from ..elf.image import Segment
    from ..elf.symbol_table import Symbol
    from .graph import GraphReport
    from .report import BlobReport, EntryReport, LibraryReport

SymbolOrder = Literal["file", "name", "size", "address"]
_KEYS: dict[SymbolOrder, Callable[[Symbol], Any]] = {
    "name": lambda symbol: symbol.name,
    "size": lambda symbol: -symbol.size,
    "address": lambda symbol: symbol.address,
}


def select_symbols(
    symbols: Iterable[Symbol],
    *,
    text: str | None = None,
    pattern: re.Pattern[str] | None = None,
    defined: bool | None = None,
    order: SymbolOrder = "file",
) -> list[Symbol]:
    """Select symbols by their names, and sort them; equal ones keep the order of the file.

    `defined` is True for defined symbols only, False for undefined ones.
    """
    found = [
        symbol
        for symbol in symbols
        if (text is None or text in symbol.name)
        and (pattern is None or pattern.search(symbol.name))
        and (defined is None or symbol.defined == defined)
    ]
    return sorted(found, key=_KEYS[order]) if order in _KEYS else found


def list_symbols(title: str, symbols: list[Symbol], count: int) -> Iterator[Line]:
    """List symbols of a table of `count` symbols, with the purpose of known ones."""
    shown = f"{len(symbols):,}" if len(symbols) == count else f"{len(symbols):,} of {count:,}"
    yield line((f"{title}: ", "title"), shown)
    yield from table([_SYMBOL_HEAD, *map(_symbol, symbols)], right=(0, 1, 5)) if symbols else ()


def list_entries(blob: BlobReport) -> Iterator[Line]:
    """List the entries of a blob, with the first fields of their payloads."""
    yield line((title_of(blob), "title"))
    if blob.error is not None:
        yield line("  ", (blob.error, "bad"), hang=4)
    rows = [_entry(blob, entry) for entry in blob.entries]
    lines = table([_ENTRY_HEAD, *rows], right=(2,)) if rows else []
    yield from lines[:1]
    for entry, one in zip(blob.entries, lines[1:], strict=True):
        yield one
        for field in entry.fields:
            yield line("      ", (f"{field.name}: ", "dim"), field.text, hang=8)


def list_sizes(report: LibraryReport) -> Iterator[Line]:
    """List the sizes of segments, sections and blob entries, the largest first."""
    yield line((f"segments, of {report.nbytes:,} bytes", "title"))
    loads = [_segment(segment, report.nbytes) for segment in report.segments]
    yield from table([_SEGMENT_HEAD, *loads], right=(0, 1, 2, 3, 4)) if loads else ()
    sections = sorted(report.sections, key=lambda s: -s.file_nbytes)
    rows = [
        _size(section.file_nbytes, report.nbytes, section.offset, section.name)
        for section in sections
        if section.file_nbytes
    ]
    if left := _uncovered(report):
        rows.append([(f"{left:,}", ""), (f"{left / report.nbytes:.1%}", ""), ("", ""), _NO_SECTION])
    yield from _sizes("sections", rows)
    if report.blob is not None:
        start = (report.blob.offset or 0) + HEADER_NBYTES
        entries = sorted(report.blob.entries, key=lambda entry: -entry.nbytes)
        rows = [_size(e.nbytes, report.nbytes, start + e.offset, e.key) for e in entries]
        yield from _sizes("blob entries", rows)
    if report.graph is not None:
        yield from _weights_of_few_bits(report.graph)


def _weights_of_few_bits(graph: GraphReport) -> Iterator[Line]:
    """Count the weights that are stored as integers in blocks, by their bits."""
    counts: dict[tuple[int, int], list[int]] = {}
    for form in graph.weights.values():
        if form.get("kernel") == "matmul_bits":
            known = counts.setdefault((form.get("bits", 0), form.get("block", 0)), [])
            known.append(prod(form.get("shape", ())))
    for (bits, block), sizes in sorted(counts.items()):
        text = f"{len(sizes)} of {bits} bits in blocks of {block}, {sum(sizes):,} elements"
        yield line(("weights: ", "title"), text)


def _uncovered(report: LibraryReport) -> int:
    """Count the bytes of the file outside all sections: headers, padding, appended data."""
    left, end = report.nbytes, 0
    for section in sorted(report.sections, key=lambda section: section.offset):
        stop = min(section.offset + section.file_nbytes, report.nbytes)
        left -= max(stop - max(section.offset, end), 0)
        end = max(end, stop)
    return left


def _sizes(title: str, rows: list[list[Span]]) -> Iterator[Line]:
    yield line((title, "title"))
    yield from table([_SIZE_HEAD, *rows], right=(0, 1, 2)) if rows else [line("  none")]


def _head(*names: str) -> list[Span]:
    return [(name, "dim") for name in names]


_NO_SECTION: Span = ("in no section: headers, padding", "dim")
_SYMBOL_HEAD = _head("address", "size", "type", "bind", "visibility", "section", "name", "")
_ENTRY_HEAD = _head("offset", "in file", "bytes", "key")
_SEGMENT_HEAD = _head("bytes", "share", "in memory", "offset", "address", "flags", "type")
_SIZE_HEAD = _head("bytes", "share", "offset", "name")


def _symbol(symbol: Symbol) -> list[Span]:
    meaning = meaning_of(symbol.name)
    version = f"{'@@' if symbol.default_version else '@'}{symbol.version}" if symbol.version else ""
    return [
        (f"{symbol.address:#x}", ""),
        (f"{symbol.size:,}", ""),
        (symbol.type, ""),
        (symbol.bind, ""),
        (symbol.visibility, ""),
        (symbol.section, "" if symbol.defined else "warn"),
        (f"{symbol.name}{version}", "name"),
        (f"# {meaning}" if meaning else "", "dim"),
    ]


def _entry(blob: BlobReport, entry: EntryReport) -> list[Span]:
    place = hex(blob.offset + HEADER_NBYTES + entry.offset) if blob.offset is not None else "?"
    return [(f"{entry.offset:#x}", ""), (place, ""), (f"{entry.nbytes:,}", ""), (entry.key, "name")]


def _segment(segment: Segment, total: int) -> list[Span]:
    *sizes, offset, name = _size(segment.nbytes, total, segment.offset, segment.type_name)
    memory, address = f"{segment.memory_nbytes:,}", f"{segment.address:#x}"
    return [*sizes, (memory, ""), offset, (address, ""), (segment.access, ""), name]


def _size(nbytes: int, total: int, offset: int, name: str) -> list[Span]:
    return [
        (f"{nbytes:,}", ""),
        (f"{nbytes / total:.1%}", ""),
        (f"{offset:#x}", ""),
        (name, "name"),
    ]
