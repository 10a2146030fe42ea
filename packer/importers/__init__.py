"""Importers: modules made from what others describe, such as a model or a Python file.

    __init__.py   `Importer`, `Setting`: what a distribution registers
    header/       C headers, which packer reads itself (``header`` in a table of functions)

A distribution registers each importer as an entry point of the group ``dso_packer.importers``,
named after its kind. The module of the entry point imports nothing but packer; what takes long to
import is imported when `Importer.make` is called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    import argparse

    from runtime.module import Module

SettingType = Literal["string", "strings", "path", "boolean", "number", "table"]


class Setting(NamedTuple):
    """One setting of an importer: a key of its table in packer.toml, and an argument of `make`.

    Attributes
    ----------
    name : str
        The key and the argument.
    type : {"string", "strings", "path", "boolean", "number", "table"}
        What the key must contain: ``"strings"`` is an array of strings, ``"path"`` a path relative
        to the file, ``"number"`` a positive one, ``"table"`` names with a string or an array of
        strings each. `make` gets str, tuple of str, Path, bool, float, or dict of str to tuple of
        str; from an option what argparse makes of it, lists as tuples and paths as Path. A setting
        that is missing is not passed.
    text : str
        Its meaning, in Markdown, for the reference.
    read : callable, optional
        Converts the value before `make` gets it; raises ExportError for a text of another form.
    """

    name: str
    type: SettingType
    text: str
    read: Callable[[Any], Any] | None = None


class Importer(NamedTuple):
    """How modules are made of one kind of source.

    Attributes
    ----------
    kind : str
        ``kind = "onnx"`` in packer.toml, ``--onnx`` of `packer export`, and `packer.from_onnx`.
    suffixes : mapping of str to callable or None
        The suffixes of files that `packer export` recognises: ``".onnx"``. A callable gets the
        first 4096 bytes of a file and returns False if the file is of another importer.
    make : callable or str
        ``make(source, progress=..., **settings)`` returns the root of a tree of modules; or
        ``"module:function"``, which is imported when it is needed. `source` is a Path; a str if
        `takes_names`. `progress` is called with the name of each step. It raises ExportError for
        a source that cannot be imported. The export shows ``notes`` of the module, a list of str.
    settings : sequence of Setting
        The keys of its table in packer.toml beside ``model`` or ``sources``.
    add_options : callable, optional
        Adds the options of `packer export` to an argument group, whose ``dest`` are settings.
    title : str
        The heading of its options in ``--help``.
    text : str
        The help of its option ``--kind``.
    takes_names : bool
        True if a source is a Python function: ``"FILE.py:FUNCTION"`` or ``"MODULE:FUNCTION"``.
    takes_folders : bool
        True if a source may also be a folder, whose files are its input.
    """

    kind: str
    suffixes: Mapping[str, Callable[[bytes], bool] | None]
    make: Callable[..., Module] | str
    settings: Sequence[Setting] = ()
    add_options: Callable[[argparse._ArgumentGroup], None] | None = None
    title: str = ""
    text: str = ""
    takes_names: bool = False
    takes_folders: bool = False

    def function(self) -> Callable[..., Module]:
        """Return `make`; its module is imported."""
        if not isinstance(self.make, str):
            return self.make
        from importlib import import_module

        module, _, name = self.make.partition(":")
        found: Callable[..., Module] = getattr(import_module(module), name)
        return found
