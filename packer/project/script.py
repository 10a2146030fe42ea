"""The kind "numba": a Python file as packer.toml and the command line describe it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from runtime.error import ExportError
from runtime.module import Module

from ..importers import find_model_importer
from .inputs import Inputs
from .sources import importing
from .table import Table


class ScriptSource(NamedTuple):
    """A Python file whose functions are compiled.

    Attributes
    ----------
    kind : str
        The importer: a key of `SCRIPTS`.
    path : Path
        The file.
    functions : mapping of str to sequence of str
        The signatures of functions, in place of those in the file.
    only : tuple of str
        The functions to export, beside those of `functions`; all if empty.
    options : mapping of str
        Further arguments of the importer.
    """

    kind: str
    path: Path
    functions: Mapping[str, Sequence[str]] = MappingProxyType({})
    only: tuple[str, ...] = ()
    options: Mapping[str, Any] = MappingProxyType({})

    def module(self, inputs: Inputs) -> Module:
        """Compile the functions; the file is added to the inputs. ExportError as the importer."""
        inputs.progress(f"import {self.path.name}")
        inputs.add(self.path)
        make = find_model_importer(self.kind)
        options = {"progress": inputs.progress, **self.options}
        made = make(self.path, functions=self.functions, only=self.only, **options)
        inputs.notes.extend(getattr(made, "notes", ()))
        return made


def script_module(table: Table) -> Module:
    """Make the module that a table describes, one for each file."""
    kind, paths = table.needed_text("kind"), table.needed_files("sources")
    functions = table.table("functions")
    chosen = {name: _texts(functions, name) for name in functions}
    options: dict[str, Any] = {"force": table.flag("force")}
    if (timeout := table.plain("timeout")) is not None:
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout <= 0:
            raise table.error(f"expected seconds, found {timeout!r}", "timeout")
        options["timeout"] = float(timeout)
    if (blas := table.text("blas")) is not None:
        options["blas"] = table.file("blas", blas)
    if len(paths) > 1 and (chosen or table.texts("only")):
        raise table.error("functions of several files, expected a table for each file", "sources")
    only = table.texts("only")
    made = (ScriptSource(kind, path, chosen, only, options) for path in paths)
    return importing([source.module(table.inputs) for source in made])


def read_signatures(texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Read ``NAME=SIGNATURE`` texts; a name that comes again adds a signature.

    Raises
    ------
    ExportError
        If a text has another form.
    """
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        name, separator, signature = (part.strip() for part in text.partition("="))
        if not (name.isidentifier() and separator and signature):
            example = "dist=float64(float64[::1])"
            raise ExportError(
                f"signature: expected NAME=SIGNATURE, as in {example}, found {text!r}"
            )
        found[name] = (*found.get(name, ()), signature)
    return found


def _texts(table: Table, name: str) -> tuple[str, ...]:
    return table.texts(name) if isinstance(table.plain(name), list) else (table.needed_text(name),)
