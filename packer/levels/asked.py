"""choose_levels: the levels that the caller names, or else what importers ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.error import ExportError, ToolchainError

from ..files.private_directory import temporary_directory
from ..toolchain.compilation import Compilation
from .choice import find_levels
from .note import imported_code
from .table import levels_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.module import Module

    from ..modules.host import HostModule
    from ..target import Target
    from ..toolchain.linker import Linker
    from .note import ImportedCode
    from .table import Level

_X86 = "x86_64"


def choose_levels(
    cpu: str | Sequence[str] | None,
    target: Target,
    root: Module,
    hosts: Sequence[HostModule],
    linker: Linker,
) -> tuple[tuple[Level, ...], list[str]]:
    """Return the levels of an export, lowest first, and the notes about imported code.

    `cpu` names them. If it is None, importers may ask for levels; if the code cannot be compiled
    for these, there are none, and a note says why. Raises ExportError as `find_levels` does, and if
    `cpu` names levels beside a module that is compiled for one processor.
    """
    imported = imported_code(root)
    levels, notes = find_levels(cpu, target), [note for code in imported for note in code.notes]
    fixed = next((host for host in hosts if host.one_level), None)
    if levels and fixed is not None:
        text = f"{fixed!r}: {fixed.one_level} beside CPU levels, of which each compiles the code"
        raise ExportError(f"{text}; drop one of them", module=fixed.type_key)
    if cpu is not None or not (asked := _asked(imported, target)):
        return levels, [*notes, *([] if levels else _slow(imported, target))]
    why = f"{fixed!r} has {fixed.one_level}" if fixed is not None else _unable(linker, asked[-1])
    if why:
        return (), [*notes, f"the code has one CPU level instead of {len(asked)}: {why}"]
    return asked, notes


def _asked(imported: Sequence[ImportedCode], target: Target) -> tuple[Level, ...]:
    names = {name for code in imported for name in code.levels}
    return tuple(x for x in levels_of(target.machine.name).values() if x.name in names)


def _unable(linker: Linker, level: Level) -> str:
    """Return why a linker's compiler cannot compile for a level; empty if it can."""
    if linker.compile_sources is None:
        return "fcompile compiles sources itself; give it compile_sources"
    with temporary_directory() as folder:
        source = folder / "empty.c"
        source.write_text("", encoding="utf-8")
        job = Compilation(source, folder / "empty.o", "c", level.options)
        try:
            linker.compile_sources([job], cwd=folder)
        except ToolchainError as error:
            return f"the compiler does not compile for {level.name} ({error})"
    return ""


def _slow(imported: Sequence[ImportedCode], target: Target) -> list[str]:
    """Code for the oldest x86-64 has no wide vectors."""
    if target.machine.name != _X86:
        return []
    _, *better = levels_of(_X86)
    text = (
        f"is for every x86-64; --cpu {','.join(better)} makes it several times faster "
        f"(in Python: cpu={better!r})"
    )
    return [f"{name} {text}" for name in dict.fromkeys(code.name for code in imported)]
