"""render(report): a report as plain text, on one screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .report import Function, LibraryReport, Linkage, Module
    from .symbols import SymbolTable

# Of any list so much is shown; the whole of it is in the report.
_SHOWN = 12
_DEPTH = 10
_DOC_WIDTH = 60


def render(report: LibraryReport) -> str:
    """Write a report for a person.

    Returns
    -------
    str
        Lines of printable text: what names and paths hold besides, terminal escapes among it,
        is written out, not obeyed. The locale's encoding may lack letters that names have.
    """
    return "".join(f"{printable(line).rstrip()}\n" for line in _lines(report))


def printable(text: str) -> str:
    """Write what would act on a terminal, instead of showing, as an escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _lines(report: LibraryReport) -> Iterator[str]:
    yield _headline(report)
    yield from (f"problem: {text}" for text in _some(report.problems))
    yield from (f"note: {text}" for text in _some(report.notes))
    if report.modules:
        yield from _block("tree", _some(_tree_lines(report.modules)))
    if report.functions:
        yield from _block(
            "functions", _some([_function(f, report.entry) for f in report.functions])
        )
    if report.entry is not None:
        yield f"entry: {report.entry}"
    if report.blob is not None:
        yield from _block(_blob_title(report), _some(_entry_lines(report)))
    symbols = report.symbols
    yield f"symbols: dynamic {_count(symbols.dynamic)}; static {_count(symbols.static)}"
    yield from _linkage(report.linkage)
    yield _hardening(report)
    yield f"constructors: {_constructors(report)}"


def _headline(report: LibraryReport) -> str:
    dialect = f"dialect {report.dialect}" if report.dialect else "no blob"
    parts = [f"{report.nbytes:,} bytes", report.machine, dialect]
    if report.producer:
        parts.append(report.producer)
    return f"{report.path}: {', '.join(parts)}"


def _block(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{title}:"
    yield from (f"  {line}" for line in lines)


def _some(lines: Sequence[str]) -> list[str]:
    left = len(lines) - _SHOWN
    if left <= 1:
        return list(lines)
    return [*lines[:_SHOWN], f"... {left:,} more, listed with --json"]


def _tree_lines(modules: Sequence[Module]) -> list[str]:
    """Depth first, each module in full once; no recursion, since a tree may be 20,000 deep."""
    lines, seen, pending = [], set[int](), [(0, 0)]
    while pending:
        index, depth = pending.pop()
        module = modules[index]
        indent = "  " * min(depth, _DEPTH)
        if index in seen:
            lines.append(f"{indent}{module.type_key} (module {index}, as above)")
            continue
        seen.add(index)
        lines.append(f"{indent}{_module(module)}")
        pending.extend((child, depth + 1) for child in reversed(module.imports))
    return lines


def _module(module: Module) -> str:
    parts = [module.fmt] if module.fmt else []
    if module.nbytes:
        parts.append(f"{module.nbytes:,} bytes")
    if module.functions:
        parts.append(_plural(len(module.functions), "function"))
    if not module.loadable:
        parts.append("no loader here")
    return f"{module.type_key}  {', '.join(parts)}"


def _function(function: Function, entry: str | None) -> str:
    if function.signature is not None:
        line = function.signature
    elif function.name == "main" and entry not in (None, "main"):
        line = f"main: the entry, {entry}"
    else:
        line = f"{function.name}: {function.abi}, no declaration"
    first = function.doc.partition("\n")[0]
    if len(first) > _DOC_WIDTH:
        first = f"{first[:_DOC_WIDTH]}..."
    return f"{line}  {first}"


def _blob_title(report: LibraryReport) -> str:
    blob = report.blob
    assert blob is not None
    place = f" at offset {blob.offset:#x}" if blob.offset is not None else ""
    return f"blob {blob.symbol}{place}, {blob.nbytes:,} bytes"


def _entry_lines(report: LibraryReport) -> list[str]:
    assert report.blob is not None
    return [f"{e.offset:#010x}  {e.nbytes:>12,}  {e.key}" for e in report.blob.entries]


def _count(symbols: SymbolTable) -> str:
    if not symbols:
        return "none"
    defined = symbols.count_defined()
    return f"{defined:,} defined, {len(symbols) - defined:,} undefined"


def _linkage(linkage: Linkage) -> Iterator[str]:
    if linkage.soname is not None:
        yield f"soname: {linkage.soname}"
    yield f"needed: {', '.join(_some(linkage.needed)) or 'nothing'}"
    for name in ("audit", "filter"):
        if values := getattr(linkage, name):
            yield f"{name}: {', '.join(_some(values))}"


def _hardening(report: LibraryReport) -> str:
    hardening, linkage = report.hardening, report.linkage
    parts = [f"RELRO {hardening.relro}", f"NX {'yes' if hardening.nx else 'no'}"]
    parts.append(f"RPATH {', '.join(linkage.rpath) or 'none'}")
    parts.append(f"RUNPATH {', '.join(linkage.runpath) or 'none'}")
    parts += ["a segment is writable and executable"] if hardening.rwx else []
    parts += ["TEXTREL"] if hardening.textrel else []
    return f"hardening: {'; '.join(parts)}"


def _constructors(report: LibraryReport) -> str:
    shown = [f"{c.name or hex(c.address)} ({c.kind})" for c in report.constructors]
    return ", ".join(_some(shown)) or "none"


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
