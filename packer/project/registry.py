"""The importers of the installed distributions: found by name, by suffix, or all of them.

An importer is loaded when it is asked for, so an export of C reads no entry points. One that cannot
be used is left out; `problems` says why, and of which distribution it is.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.error import near_names

from ..importers import Importer
from .imported import imported_module, keys_of
from .kinds import KINDS, Kind
from .sources import is_known_suffix

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .table import Table

GROUP = "dso_packer.importers"
# The kinds that are extras of dso-packer of the same name: their suffixes and distributions.
EXTRAS = {
    "numba": (".py", "dso-packer-numba"),
    "onnx": (".onnx", "dso-packer-onnx"),
    "torch": (".py", "dso-packer-onnx"),
}
_FIRST_BYTES = 4096
_SLOW_S = 1.0
_problems: dict[str, str] = {}


@cache
def entries() -> Mapping[str, EntryPoint]:
    """Return the entry points by their names, which are kinds; none of them is loaded."""
    from importlib.metadata import entry_points

    found: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=GROUP), key=_distribution):
        first = found.setdefault(entry.name, entry)
        if entry.value != first.value:
            text = f"importer {entry.name!r} of {_distribution(entry)}: its kind is taken by"
            _problems[entry.name] = f"{text} {_distribution(first)}"
    return found


@cache
def find(kind: str) -> Importer | None:
    """Return the importer of a kind; None if there is none, or it cannot be used."""
    if (entry := entries().get(kind)) is None:
        return None
    start = time.monotonic()
    try:
        importer = entry.load()
    except Exception as error:  # of another distribution
        refuse(kind, f"{type(error).__name__}: {error}")
        return None
    if (seconds := time.monotonic() - start) > _SLOW_S:
        refuse(kind, f"its import took {seconds:.1f} s, expected less than {_SLOW_S:.0f} s")
    if fault := _fault(kind, importer):
        refuse(kind, fault)
        return None
    found: Importer = importer
    return found


def kind_of_table(table: Table) -> Kind:
    """Return the kind that a table names; raises ExportError if nothing knows it."""
    name = table.needed_text("kind")
    if name in KINDS:
        return KINDS[name]
    if (importer := find(name)) is not None:
        return Kind(keys_of(importer), partial(imported_module, importer))
    if name in EXTRAS and name not in _problems:
        raise table.error(f"{name!r} {advice(name)}", "kind")
    why = f"; {_problems[name]}" if name in _problems else near_names(name, [*KINDS, *entries()])
    raise table.error(f"unknown kind {name!r}{why}", "kind")


def every() -> list[Importer]:
    """Return all importers that can be used, in the order of their kinds."""
    return [importer for kind in sorted(entries()) if (importer := find(kind)) is not None]


def of_file(path: Path, importers: Sequence[Importer]) -> list[Importer]:
    """Return the importers whose suffix and test accept a file; it may be missing."""
    chosen = [importer for importer in importers if path.suffix in importer.suffixes]
    if not chosen or not path.is_file():  # a FIFO would block
        return chosen
    try:
        with path.open("rb") as file:
            first = file.read(_FIRST_BYTES)
    except OSError:
        return chosen
    tests = [(importer, importer.suffixes[path.suffix]) for importer in chosen]
    return [importer for importer, test in tests if test is None or test(first)]


def refuse(kind: str, text: str) -> None:
    """Leave an importer out, or note a problem with it."""
    _problems[kind] = f"importer {kind!r} of {_distribution(entries()[kind])}: {text}"


def advice(kind: str) -> str:
    """Return what is missing for a kind, and the command that installs it; "" if it is unknown."""
    if kind not in EXTRAS:
        return ""
    return f"needs the package {EXTRAS[kind][1]}: pip install 'dso-packer[{kind}]'"


def problems() -> Mapping[str, str]:
    """Return what is wrong with importers, by kind."""
    return _problems


def _fault(kind: str, importer: object) -> str:
    """Return why what an entry point names cannot be used, or ""."""
    if not isinstance(importer, Importer):
        return f"expected a packer.Importer, found {type(importer).__name__}"
    if importer.kind != kind:
        return f"its kind is {importer.kind!r}, expected the name of its entry point"
    if kind in KINDS:
        return f"kind {kind!r} is one of packer's; choose another"
    taken = [suffix for suffix in importer.suffixes if is_known_suffix(suffix)]
    return f"suffix {taken[0]!r} is one of packer's; remove it" if taken else ""


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value
