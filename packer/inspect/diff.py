"""diff_libraries(a, b): the differences of two libraries, read without running either.

Each library is described by facts: group -> item -> field -> value. The facts of both are compared
field by field.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from ..elf.structures import PF_X, PT_LOAD
from . import open_library
from .drawing import Line, Role, line
from .tree import payload_of, unpadded

if TYPE_CHECKING:
    from ..elf.symbol_table import Symbol
    from . import LibraryReport, OpenedLibrary
    from .report import FunctionReport, ModuleReport

    Fields = dict[str, object]
    Facts = dict[str, dict[str, Fields]]

_MAX_LISTED = 40
_PIECE = 4 << 20


@dataclass(frozen=True, slots=True)
class Difference:
    """An item of one library only, or a field that differs.

    Attributes
    ----------
    group : str
        ``"functions"``, ``"modules"``, ``"needed"``, ...
    item : str
        Its name in the group.
    kind : {"removed", "added", "changed"}
        The change from the first library to the second.
    field : str
        The field that changed; empty for a whole item.
    a, b : object
        Its values; for a whole item all its fields.
    """

    group: str
    item: str
    kind: Literal["removed", "added", "changed"]
    field: str = ""
    a: object = None
    b: object = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, ready for `json.dumps`."""
        return asdict(self)


def diff_libraries(a: str | os.PathLike[str], b: str | os.PathLike[str]) -> list[Difference]:
    """Compare two libraries.

    Compared are functions and signatures, modules and their payloads, symbols, constructors,
    needed libraries, and the machine code as a whole. Neither library is run.

    Parameters
    ----------
    a, b : path
        The libraries.

    Returns
    -------
    list of Difference
        From `a` to `b`; empty if the files have the same bytes. Files with different bytes always
        have a difference in the group ``"file"``, which may be the only one.

    Raises
    ------
    LibraryLoadError
        If one of the files is not an ELF library.

    Examples
    --------
    >>> from packer.inspect.diff import diff_libraries
    >>> [d.item for d in diff_libraries("old.so", "new.so") if d.kind == "added"]  # doctest: +SKIP
    ['add']
    """
    first, second = open_library(a), open_library(b)
    if _is_equal(first.data, second.data):
        return []
    old, new = _facts(first), _facts(second)
    found = [difference for group in old for difference in _compare(group, old[group], new[group])]
    nbytes = (len(first.data), len(second.data))
    return [*found, Difference("file", "bytes", "changed", "nbytes", *nbytes)]


def list_differences(differences: Iterable[Difference], a: str, b: str) -> Iterator[Line]:
    """Draw differences, group by group."""
    yield line((f"--- {a}", "bad"))
    yield line((f"+++ {b}", "good"))
    groups: dict[str, list[Difference]] = {}
    for difference in differences:
        groups.setdefault(difference.group, []).append(difference)
    for group, found in groups.items():
        yield line((group, "title"))
        yield from map(_drawn, found[:_MAX_LISTED])
        if len(found) > _MAX_LISTED:
            yield line((f"  ... {len(found) - _MAX_LISTED:,} more, listed with --json", "dim"))


_MARKS: dict[str, tuple[str, Role]] = {
    "removed": ("  - ", "bad"),
    "added": ("  + ", "good"),
    "changed": ("  ~ ", "warn"),
}


def _drawn(difference: Difference) -> Line:
    mark = _MARKS[difference.kind]
    if difference.group == "file":
        same = "of the same length, " if difference.a == difference.b else ""
        text = f"other bytes, {same}{difference.a:,} -> {difference.b:,}"
        return line(mark, text, hang=8)
    if difference.kind != "changed":
        return line(mark, (_whole(difference), mark[1]), hang=8)
    change = f": {difference.field} {_shown(difference.a)} -> {_shown(difference.b)}"
    return line(mark, (difference.item, "name"), change, hang=8)


def _whole(difference: Difference) -> str:
    """Return the declaration of a function, or the value of metadata; else the item's name."""
    fields = difference.a or difference.b
    if not isinstance(fields, dict):
        return difference.item
    if "value" in fields:
        return f"{difference.item} {_shown(fields['value'])}"
    return str(fields.get("signature") or difference.item)


def _shown(value: object) -> str:
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(str, value))}]"
    text = str(value) if value not in (None, "") else "none"
    return text[:12] if len(text) == 64 and text.isalnum() else text  # a digest


def _compare(group: str, old: dict[str, Fields], new: dict[str, Fields]) -> Iterator[Difference]:
    for item in old:
        if item not in new:
            yield Difference(group, item, "removed", a=old[item])
            continue
        for name, value in old[item].items():
            if value != new[item][name]:
                yield Difference(group, item, "changed", name, value, new[item][name])
    for item in new:
        if item not in old:
            yield Difference(group, item, "added", b=new[item])


# ---- the facts


def _facts(opened: OpenedLibrary) -> Facts:
    report = opened.report
    return {
        "library": {"library": {**_library(report), "code": _code(opened)}},
        "metadata": {name: {"value": value} for name, value in report.metadata.items()},
        "constants": {name: {"value": value} for name, value in report.constants.items()},
        "globals": {name: {"value": code} for name, code in report.globals.items()},
        "functions": {function.name: _function(function) for function in report.functions},
        "modules": _modules(opened),
        "needed": {name: {} for name in report.linkage.needed},
        "constructors": _numbered(report.constructors, lambda c: f"{c.name} ({c.kind})"),
        "dynamic symbols": _numbered(report.symbols.dynamic, _symbol_name, _symbol),
        "static symbols": _numbered(report.symbols.static, _symbol_name, _symbol),
    }


def _library(report: LibraryReport) -> Fields:
    linkage, hardening = report.linkage, report.hardening
    return {
        "machine": report.machine,
        "dialect": report.dialect,
        "producer": report.producer,
        "target": report.target,
        "entry": report.entry,
        "cpu": report.cpu.levels if report.cpu is not None else (),
        "soname": linkage.soname,
        "rpath": linkage.rpath,
        "runpath": linkage.runpath,
        "glibc": linkage.glibc,
        **asdict(hardening),
        "problems": report.problems,
    }


def _code(opened: OpenedLibrary) -> str:
    """Return the SHA-256 of all executable segments."""
    digest = hashlib.sha256()
    for segment in opened.report.segments:
        if segment.type == PT_LOAD and segment.flags & PF_X:
            digest.update(opened.data[segment.offset : segment.offset + segment.nbytes])
    return digest.hexdigest()


def _function(function: FunctionReport) -> Fields:
    fields = asdict(function)
    return {name: fields[name] for name in ("signature", "abi", "gil", "doc", "symbol")}


def _modules(opened: OpenedLibrary) -> dict[str, Fields]:
    """Return the modules by their place in the tree, since type keys are not unique."""
    modules = opened.report.modules
    places = _places(modules)
    digests = _digests(opened)
    return {
        place: {
            "fmt": module.fmt,
            "functions": module.functions,
            "imports": tuple(places[index] for index in module.imports),
            "nbytes": module.nbytes,
            "sha256": digests.get(module.index),
        }
        for module, place in zip(modules, places, strict=True)
    }


def _places(modules: tuple[ModuleReport, ...]) -> list[str]:
    """Return the first path to each module: ``library/cuda#2``, the second cuda of the library."""
    places = [""] * len(modules)
    if modules:
        places[0] = modules[0].type_key
    for module in modules:  # a module follows its first importer
        seen: dict[str, int] = {}
        for index in module.imports:
            key = modules[index].type_key
            seen[key] = seen.get(key, 0) + 1
            number = f"#{seen[key]}" if seen[key] > 1 else ""
            places[index] = places[index] or f"{places[module.index]}/{key}{number}"
    return places


def _digests(opened: OpenedLibrary) -> dict[int, str]:
    """Return the SHA-256 of each module's payload, by its index in the report."""
    from runtime.module import preorder

    if opened.parsed is None or opened.root is None:
        return {}
    entries = {id(e.module): e for e in opened.parsed.entries if e.module is not None}
    digests = {}
    for index, module in enumerate(preorder(opened.root)):
        if entry := entries.get(id(module)):
            payload = payload_of(entry, opened.body)
            data = unpadded(payload) if entry.key == "safetensors" else payload
            digests[index] = hashlib.sha256(data).hexdigest()
    return digests


def _symbol_name(symbol: Symbol) -> str:
    version = f"@{symbol.version}" if symbol.version else ""
    return f"{symbol.name or symbol.type}{version}"


def _symbol(symbol: Symbol) -> Fields:
    """Return what users of the library see; addresses change with every build."""
    fields = symbol._asdict()
    return {name: fields[name] for name in ("defined", "type", "bind", "visibility", "size")}


def _numbered(
    items: Iterable[Any],
    name_of: Callable[[Any], str],
    fields_of: Callable[[Any], Fields] = lambda _: {},
) -> dict[str, Fields]:
    """Return items by name; the second and later ones of a name get a number."""
    found: dict[str, Fields] = {}
    counts: dict[str, int] = {}
    for item in items:
        name = name_of(item)
        counts[name] = counts.get(name, 0) + 1
        found[name if counts[name] == 1 else f"{name} #{counts[name]}"] = fields_of(item)
    return found


def _is_equal(a: memoryview, b: memoryview) -> bool:
    starts = range(0, len(a), _PIECE)
    return len(a) == len(b) and all(
        bytes(a[s : s + _PIECE]) == bytes(b[s : s + _PIECE]) for s in starts
    )
