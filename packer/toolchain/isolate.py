"""Rename all that an object defines, so that one program can contain several models."""

from __future__ import annotations

from pathlib import Path

from runtime.abi import CONTEXT_SYMBOLS

from ..dialect import Naming
from ..elf.object_file import rename_symbols


def isolate(path: Path, naming: Naming) -> None:
    """Put the model's prefix before the name of every global symbol that an object defines.

    Parameters
    ----------
    path : Path
        The object; changed in place.
    naming : Naming
        The names of the export, which have the prefix already.

    Raises
    ------
    ExportError
        If the file is no object.

    Notes
    -----
    This includes what C++ defines in every object that uses it: no model ever runs another
    model's copy. A symbol that is only used keeps its name, except for the context symbols, which
    a program may have several of.
    """

    def rename(name: str, is_defined: bool) -> str:
        return naming.isolated(name) if is_defined or name in CONTEXT_SYMBOLS else name

    rename_symbols(path, rename)
