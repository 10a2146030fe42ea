"""The contents of the page, as JSON: the report, the regions of the file, and some bytes."""

from __future__ import annotations

import heapq
import os
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from runtime.abi import IMPORT_TREE_KEY, LIB_KEY
from runtime.blob import children_of
from runtime.serial.library_metadata import KNOWN

from ...files.text import visible
from ..meaning import meaning_of
from ..metadata import metadata_rows
from .graph import describe_graph

if TYPE_CHECKING:
    from ...elf.symbol_table import Symbol, SymbolTable
    from ..report import BlobReport, LibraryReport
    from .region import Region

# The most bytes of the file in the page: of a blob entry, of another region, and of all.
_ENTRY_BYTES, _REGION_BYTES, _ALL_BYTES = 4_096, 256, 1 << 20
_MAX_TENSORS = 50_000
_MAX_SYMBOLS = 300
_MAX_LINES = 1_000
_MAX_TEXT = 1_000


def describe(report: LibraryReport, data: memoryview, file: Region) -> dict[str, Any]:
    """Collect the contents of the page; a browser acts on none of its strings."""
    regions = list(_flat(file))
    content = _plain(
        {
            "name": os.path.basename(report.path),
            "path": report.path,
            "nbytes": report.nbytes,
            "producer": report.producer,
            "overview": dict(_overview(report)),
            "problems": report.problems[:_MAX_LINES],
            "notes": report.notes[:_MAX_LINES],
            "regions": [_region(region, parent) for region, parent in regions],
            **_tree(report),
            "functions": [
                (f.name, f.signature, f.doc, f.symbol, f.abi, f.gil, f.is_operator)
                for f in report.functions
            ],
            "entry": report.entry,
            "graph": describe_graph(report.graph),
            **_tensors(report),
            "symbols": _symbols(report),
            "startup": dict(_startup(report)),
        }
    )
    assert isinstance(content, dict)
    return {**content, "heads": list(_heads([r for r, _ in regions], data))}


def _plain(value: Any) -> Any:
    """The depth of this recursion is that of `describe`, not of the input."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, Iterable):
        return [_plain(item) for item in value]
    return value


# ---- the file


def _flat(file: Region) -> Iterator[tuple[Region, int]]:
    """Return regions with the index of their parent: parents first, siblings in order."""
    pending = [(file, -1)]
    for index, (region, parent) in enumerate(pending):
        yield region, parent
        pending.extend((child, index) for child in region.children)


def _region(region: Region, parent: int) -> Sequence[Any]:
    place = (parent, region.offset, region.nbytes)
    return region.name, region.kind, region.role, *place, region.about, region.entry


def _heads(regions: list[Region], data: memoryview) -> Iterator[str]:
    """Return the first bytes of each innermost region; fewer bytes if there are many regions."""
    num_entries = sum(region.entry is not None for region in regions) or 1
    of_entry = min(_ENTRY_BYTES, _ALL_BYTES // num_entries)
    of_other = min(_REGION_BYTES, _ALL_BYTES // len(regions))
    for region in regions:
        limit = of_other if region.entry is None else of_entry
        nbytes = 0 if region.children else min(region.nbytes, limit)
        yield b64encode(data[region.offset : region.offset + nbytes]).decode()


# ---- the tree


def _tree(report: LibraryReport) -> dict[str, Any]:
    """Return modules and CSR arrays; each module has the index of its row in the arrays."""
    blob = report.blob
    rows = _rows(report.blob, len(report.modules))
    entries = {module: row for row, module in enumerate(rows)}
    return {
        "modules": [
            (m.type_key, m.fmt, m.nbytes, m.imports, m.functions, m.loadable, len(m.tensors),
             m.signatures, entries.get(m.index, -1))
            for m in report.modules
        ],
        "rows": rows,
        "row_entries": [i for i, e in enumerate(blob.entries) if e.key != IMPORT_TREE_KEY]
        if blob
        else [],
        "row_ptr": blob.import_tree_row_ptr if blob else None,
        "child_indices": blob.import_tree_child_indices if blob else None,
    }  # fmt: skip


def _rows(blob: BlobReport | None, num_modules: int) -> list[int]:
    """Return the module of each row: rows are in blob order, modules depth first."""
    if blob is None or not blob.entries or num_modules == 0:
        return []
    if blob.import_tree_row_ptr is None or blob.import_tree_child_indices is None:
        others = iter(range(1, num_modules))  # no tree: the library imports all the others
        return [0 if entry.key == LIB_KEY else next(others, -1) for entry in blob.entries]
    children = children_of(blob.import_tree_row_ptr, blob.import_tree_child_indices)
    modules = [-1] * len(children)
    pending, count = [0], 0
    while pending:
        row = pending.pop()
        if modules[row] < 0:
            modules[row], count = count, count + 1
            pending.extend(reversed(children[row]))
    return modules


def _tensors(report: LibraryReport) -> dict[str, Any]:
    """Return the tensors; only the largest if there are too many for a page."""
    found = [(m.index, t) for m in report.modules for t in m.tensors]
    shown = heapq.nlargest(_MAX_TENSORS, found, key=lambda item: item[1].nbytes)
    types: dict[str, list[int]] = {}
    for _, t in found:
        total = types.setdefault(t.dtype, [0, 0])
        total[0] += 1
        total[1] += t.nbytes
    by_size = sorted(types.items(), key=lambda item: -item[1][1])
    return {
        "num_tensors": len(found),
        "tensors": [(t.name, t.dtype, t.shape, t.nbytes, module) for module, t in shown],
        "dtypes": [(dtype, *total) for dtype, total in by_size[:_MAX_SYMBOLS]],
    }


# ---- lists


def _overview(report: LibraryReport) -> Iterator[tuple[str, str]]:
    yield "machine", report.machine + ("" if report.native else " (not this machine)")
    yield "format", f"dialect {report.dialect}" if report.blob is not None else "no blob"
    for name in ("root", "entry", "producer", "target"):
        if value := getattr(report, name):
            yield name, value
    for name, value in islice(metadata_rows(report.metadata), _MAX_LINES):
        yield name if name in KNOWN else f"metadata {name}", value[:_MAX_TEXT]
    if report.cpu is not None:
        yield "CPU levels", ", ".join(report.cpu.levels[:_MAX_LINES])


def _startup(report: LibraryReport) -> Iterator[tuple[str, Sequence[str]]]:
    """Return the files that a load opens, the code that it runs, and the memory protection."""
    linkage, hardening = report.linkage, report.hardening
    yield "needed libraries", linkage.needed[:_MAX_LINES]
    yield (
        "constructors",
        [f"{c.name or 'unnamed'} ({c.kind}, {c.address:#x})" for c in report.constructors],
    )
    yield "RELRO", [hardening.relro]
    yield "executable stack", ["no" if hardening.nx else "yes"]
    yield "writable and executable memory", ["yes" if hardening.rwx else "no"]
    yield "relocations in read-only memory", ["yes" if hardening.textrel else "no"]
    yield "branch protection", [", ".join(hardening.branch_protection) or "none"]
    yield "RPATH", linkage.rpath[:_MAX_LINES]
    yield "RUNPATH", linkage.runpath[:_MAX_LINES]
    if linkage.soname is not None:
        yield "soname", [linkage.soname]
    for name in ("audit", "filter"):  # rare, and security-relevant
        if values := getattr(linkage, name):
            yield name, values[:_MAX_LINES]


def _symbols(report: LibraryReport) -> dict[str, Any]:
    dynamic, static = report.symbols.dynamic, report.symbols.static
    defined = (symbol for symbol in dynamic if symbol.defined)
    undefined = (symbol for symbol in dynamic if not symbol.defined)
    largest = heapq.nlargest(_MAX_SYMBOLS, defined, key=lambda symbol: symbol.size)
    return {
        "counts": [_counts("dynamic", dynamic), _counts("static", static)],
        "limit": _MAX_SYMBOLS,
        "defined": list(map(_symbol, largest)),
        "undefined": list(map(_symbol, islice(undefined, _MAX_SYMBOLS))),
    }


def _counts(name: str, table: SymbolTable) -> Sequence[Any]:
    defined = table.count_defined()
    return name, defined, len(table) - defined


def _symbol(symbol: Symbol) -> Sequence[Any]:
    return (
        symbol.name,
        symbol.type,
        symbol.bind,
        symbol.version,
        symbol.size,
        meaning_of(symbol.name),
    )
