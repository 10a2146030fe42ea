"""Marks of imported code: its name in messages, notes, and the levels that it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from runtime.module import Module, preorder

if TYPE_CHECKING:
    from collections.abc import Sequence

_MARK = "_imported_code"  # the attribute of a module that an importer made


class ImportedCode(NamedTuple):
    """The name of the code in messages, further notes about it, and the levels it asks for."""

    name: str
    notes: tuple[str, ...]
    levels: tuple[str, ...]


def mark_imported(module: Module, name: str, *notes: str, levels: Sequence[str] = ()) -> None:
    """Let exports of a module print notes, and compile for levels where ``cpu`` names none.

    `levels` may name levels of several machines; an export uses the levels of its target.
    """
    setattr(module, _MARK, ImportedCode(name, notes, tuple(levels)))


def imported_code(root: Module) -> list[ImportedCode]:
    """Return the marks of a tree."""
    return [getattr(module, _MARK) for module in preorder(root) if hasattr(module, _MARK)]
