"""render(report): a report as text, on one screen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING

from ..model_text import signatures_text, work_text
from .drawing import Line, Span, draw, line
from .metadata import metadata_rows
from .report import title_of

if TYPE_CHECKING:
    from ..elf.linkage import Linkage
    from ..elf.symbol_table import SymbolTable
    from .graph import GraphReport
    from .report import CpuReport, FunctionReport, LibraryReport, ModuleReport

# The most items shown of a list; the report has all of them.
_SHOWN = 12
_SHOWN_NAMES = 6
_DEPTH = 10
_DOC_WIDTH = 60
_HANG = 4
_SEMICOLON: Span = ("; ", "")


def render(report: LibraryReport, *, colour: bool = False, width: int | None = None) -> str:
    """Write a report as lines of printable text, at most `width` columns wide.

    Control characters in names and paths, such as terminal escapes, are written as escapes. The
    locale's encoding may lack letters of the names.
    """
    return draw(summary(report), colour=colour, width=width)


def summary(report: LibraryReport) -> Iterator[Line]:
    """Return the most important facts."""
    yield headline(report)
    yield from (line(("problem: ", "bad"), text, hang=2) for text in _some(report.problems))
    if report.graph is not None:
        yield from _model(report.graph)
    yield from (line(("note: ", "warn"), text, hang=2) for text in _some(report.notes))
    if report.metadata:
        yield from _block("metadata", _metadata(report), len(report.metadata))
    if report.modules:
        yield _label("root", report.root or "")
        count = 1 + sum(len(module.imports) for module in report.modules)
        yield from _block("tree", _tree_lines(report.modules), count)
    yield from _functions(report)
    if report.entry is not None:
        yield _label("entry", report.entry)
    if report.constants:
        rows = (line((name, "name"), f" = {value!r}") for name, value in report.constants.items())
        yield from _block("constants", rows, len(report.constants))
    if report.globals:
        yield _label("globals", ", ".join(_some(list(report.globals))))
    if report.cpu is not None:
        yield from _cpu_levels(report.cpu)
    yield from _weights(report.modules)
    if report.blob is not None:
        yield from _block(title_of(report.blob), _entry_lines(report), len(report.blob.entries))
    symbols = report.symbols
    yield _label("symbols", f"dynamic {_count(symbols.dynamic)}; static {_count(symbols.static)}")
    yield from _linkage(report.linkage)
    yield _hardening(report)
    yield _label("constructors", _constructors(report))


def headline(report: LibraryReport) -> Line:
    """Return the file, its size, its target and its producer."""
    dialect = f"dialect {report.dialect}" if report.blob is not None else "no blob"
    parts = [f"{report.nbytes:,} bytes", f"ELF-64 {report.machine}", dialect]
    if report.producer:
        parts.append(f"{report.producer} for {report.target}")
    return line((report.path, "title"), f": {', '.join(parts)}", hang=2)


def _model(graph: GraphReport) -> Iterator[Line]:
    """Return the signatures of a model, and its graph."""
    main, *others = signatures_text(graph)
    yield line((main, "name"), hang=_HANG)
    yield from (line("  also ", (text, "name"), hang=_HANG) for text in _some(others))
    kinds = [f"{count} {op or 'operators'}" for op, count in graph.operators.items()]
    yield _label("graph", f"{work_text(graph)}: {', '.join(_some(kinds))}")
    packed = sum(form.get("form") == "packed" for form in graph.weights.values())
    if packed or graph.folded:
        text = f"  weights of it: {packed} packed as an operator reads them"
        yield line(text, f", {len(graph.folded)} folded into others", hang=_HANG)


def _metadata(report: LibraryReport) -> Iterator[Line]:
    for name, value in metadata_rows(report.metadata):
        yield line((name, "name"), f": {value}")


def _label(name: str, *parts: str | Span) -> Line:
    return line((f"{name}:", "title"), " ", *parts, hang=_HANG)


def _block(title: str, lines: Iterable[Line], count: int) -> Iterator[Line]:
    """Return the first of `count` lines, without creating the others."""
    yield line((f"{title}:", "title"))
    shown = count if count - _SHOWN <= 1 else _SHOWN
    yield from (Line([("  ", ""), *one.spans]) for one in islice(lines, shown))
    if shown < count:
        yield line((f"  {_more(count - shown)}", "dim"))


def _some(texts: Sequence[str], limit: int = _SHOWN) -> list[str]:
    left = len(texts) - limit
    return list(texts) if left <= 1 else [*texts[:limit], _more(left)]


def _more(count: int) -> str:
    return f"... {count:,} more, listed with --json"


def _tree_lines(modules: Sequence[ModuleReport]) -> Iterator[Line]:
    """Depth first, each module in full once; not recursive, since a tree may be 20,000 deep."""
    seen, pending = set[int](), [(0, 0)]
    while pending:
        index, depth = pending.pop()
        module = modules[index]
        name: Span = ("  " * min(depth, _DEPTH) + module.type_key, "name")
        if index in seen:
            yield line(name, (f" (module {index}, as above)", "dim"))
            continue
        seen.add(index)
        yield line(name, f"  {', '.join(_module(module))}")
        pending.extend((child, depth + 1) for child in reversed(module.imports))


def _module(module: ModuleReport) -> Iterator[str]:
    if module.fmt:
        yield module.fmt
    if module.nbytes:
        yield f"{module.nbytes:,} bytes"
    if module.functions:
        yield _plural(len(module.functions), "function")
    if module.tensors:
        yield _plural(len(module.tensors), "tensor")
    if not module.loadable:
        yield "no loader here"


def _functions(report: LibraryReport) -> Iterator[Line]:
    """List the root's functions if it is not host code (bytecode, a graph), then the library's.

    The functions that a model calls, its operators, are one line.
    """
    above = set(signatures_text(report.graph)) if report.graph is not None else set()
    root = next((m for m in report.modules[:1] if m.type_key != "library"), None)
    names = [text for text in root.signatures if text not in above] if root is not None else []
    others = [function for function in report.functions if not function.is_operator]
    if count := len(names) + len(others):
        of_root = (line(text, (f"  in {report.root}", "dim")) for text in names)
        own = (_function(function, report.entry) for function in others)
        yield from _block("functions", chain(of_root, own), count)
    if folded := len(report.functions) - len(others):
        text = f"{_plural(folded, 'function')} that the model calls, listed with --json"
        yield _label("operators", text)


def _function(function: FunctionReport, entry: str | None) -> Line:
    if function.signature is not None:
        text = function.signature
    elif function.name == "main" and entry not in (None, "main"):
        text = f"main: the entry, {entry}"
    elif function.metadata is not None:
        text = f"{function.name}: {function.abi}; its types are only known to {function.metadata}"
    else:
        text = f"{function.name}: {function.abi}, no declaration"
    first = function.doc.partition("\n")[0]
    if len(first) > _DOC_WIDTH:
        first = f"{first[:_DOC_WIDTH]}..."
    return line(text, (f"  {first}", "dim"))


def _cpu_levels(cpu: CpuReport) -> Iterator[Line]:
    names = ", ".join(_some(cpu.levels))
    is_one = len(cpu.levels) == 1
    yield _label("cpu", f"{names}, all code" if is_one else f"{names}; a load uses the best")
    for text in _some(cpu.lowest):
        yield line(f"  {cpu.levels[0]} only: {text}", hang=_HANG)


def _weights(modules: Iterable[ModuleReport]) -> Iterator[Line]:
    tensors = [tensor for module in modules for tensor in module.tensors]
    if tensors:
        nbytes = sum(tensor.nbytes for tensor in tensors)
        largest = max(tensors, key=lambda tensor: tensor.nbytes)
        text = f"{_plural(len(tensors), 'tensor')}, {nbytes:,} bytes; the largest is "
        yield _label("weights", f"{text}{largest.name} {largest.dtype}{list(largest.shape)}")


def _entry_lines(report: LibraryReport) -> Iterator[Line]:
    assert report.blob is not None
    for e in report.blob.entries:
        yield line(f"{e.offset:#010x}  {e.nbytes:>12,}  ", (e.key, "name"))


def _count(symbols: SymbolTable) -> str:
    if not symbols:
        return "none"
    defined = symbols.count_defined()
    return f"{defined:,} defined, {len(symbols) - defined:,} undefined"


def _linkage(linkage: Linkage) -> Iterator[Line]:
    if linkage.soname is not None:
        yield _label("soname", linkage.soname)
    yield _label("needed", ", ".join(_some(linkage.needed)) or "nothing")
    if linkage.glibc is not None:
        yield _label("glibc", f"{linkage.glibc} or newer")
    for name in ("audit", "filter"):
        if values := getattr(linkage, name):
            yield _label(name, ", ".join(_some(values)))


def _hardening(report: LibraryReport) -> Line:
    hardening, linkage = report.hardening, report.linkage
    rwx = "a segment is writable and executable" if hardening.rwx else "no segment is both W and X"
    parts: list[Span] = [
        (f"RELRO {hardening.relro}", "good" if hardening.relro == "full" else "warn"),
        (f"NX {'yes' if hardening.nx else 'no'}", "good" if hardening.nx else "bad"),
        (rwx, "bad" if hardening.rwx else "good"),
        (f"RPATH {', '.join(linkage.rpath) or 'none'}", ""),
        (f"RUNPATH {', '.join(linkage.runpath) or 'none'}", ""),
    ]
    if hardening.branch_protection:
        parts.append((", ".join(hardening.branch_protection), "good"))
    if hardening.textrel:
        parts.append(("TEXTREL", "bad"))
    spans: list[Span] = [span for part in parts for span in (_SEMICOLON, part)]
    return _label("hardening", *spans[1:])


def _constructors(report: LibraryReport) -> str:
    shown = [f"{c.name or hex(c.address)} ({c.kind})" for c in report.constructors]
    return ", ".join(_some(shown, _SHOWN_NAMES)) or "none"


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"
