"""Notes of an export about the speed of imported code."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from runtime.module import Module, preorder

from .table import levels_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..target import Target
    from .table import Level

_X86 = "x86_64"
_MARK = "_imported_code"  # the attribute of a module that an importer made


class _ImportedCode(NamedTuple):
    """The name of the code in messages, and further notes about it."""

    name: str
    notes: tuple[str, ...]


def mark_imported(module: Module, name: str, *notes: str) -> None:
    """Let exports of a module say how its code becomes faster, and further notes."""
    setattr(module, _MARK, _ImportedCode(name, notes))


def speed_notes(root: Module, target: Target, levels: Sequence[Level]) -> list[str]:
    """Return the notes about a tree: its importers' notes, and whether a level is missing.

    Code for the oldest x86-64 has no wide vectors.
    """
    found: list[_ImportedCode] = [
        getattr(module, _MARK) for module in preorder(root) if hasattr(module, _MARK)
    ]
    notes = [note for code in found for note in code.notes]
    if levels or target.machine.name != _X86:
        return notes
    _, *better = levels_of(_X86)
    text = (
        f"is for every x86-64; --cpu {','.join(better)} makes it several times faster "
        f"(in Python: cpu={better!r})"
    )
    return [*notes, *(f"{name} {text}" for name in dict.fromkeys(code.name for code in found))]
