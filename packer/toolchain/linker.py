"""Linkers: functions that make an output of objects, and their optional attributes."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from runtime.error import ExportError, ToolchainError

from ..files.arguments import PathLike, list_of
from ..target import find_target, native_triple
from .create import create_object

# Called as (output, objects, options=[...]); `Linker` lists the attributes that it may have.
Fcompile = Callable[..., None]
CompileSources = Callable[..., list[Path]]
Triple = Callable[[], str | None]


class Linker:
    """A linker; called as an `fcompile`: ``link(output, objects, options=[...])`` makes the output.

    `output_format` is the suffix of the output; empty if the output's name decides. `object_format`
    is the suffix that it prefers for modules that have a choice. `get_target_triple` returns None
    if the triple is unknown. `compile_sources` is the function of `compilation`, or one like it;
    without it `link` gets the sources, and the options of all of them. `create_object` merges
    objects, and `link_c` links code without a C++ library.
    """

    def __init__(
        self,
        link: Fcompile,
        *,
        output_format: str = "",
        object_format: str = "o",
        get_target_triple: Triple | None = None,
        compile_sources: CompileSources | None = None,
        create_object: Fcompile = create_object,
        link_c: Fcompile | None = None,
    ) -> None:
        self._link = link
        self.output_format = output_format
        self.object_format = object_format
        self.get_target_triple = get_target_triple or (lambda: None)
        self.compile_sources = compile_sources
        self.create_object = create_object
        self.link_c = link_c or link

    def __call__(
        self,
        output: PathLike,
        objects: PathLike | Sequence[PathLike],
        options: Sequence[str] | None = None,
    ) -> None:
        self._link(output, objects, options=list_of(options, "options"))

    def triple(self, asked: str | None = None, *, may_be_missing: bool = False) -> str | None:
        """Return the linker's target triple, or `asked` if the linker does not know it.

        Where the compiler `may_be_missing`, and is, the triple is that of this machine. Raises
        ExportError if the linker is for another target than `asked`, or for an unsupported one.
        Raises ToolchainError if the compiler is missing, or if CC or CXX names a program that is
        not a compiler.
        """
        try:
            found = self.get_target_triple() or asked
        except ToolchainError:
            if not may_be_missing or os.environ.get("CXX") or os.environ.get("CC"):
                raise
            return native_triple()
        if found is None:
            return None
        target = find_target(found)
        if asked is not None and not target.is_like(find_target(asked)):
            text = f"target {asked!r}, but the target of fcompile is {found!r}"
            raise ExportError(text)
        return asked or found


def whole(archives: Sequence[Path]) -> list[str]:
    """Return the options that link every member of archives."""
    return [
        word
        for path in archives
        for word in ("-Wl,--whole-archive", str(path), "-Wl,--no-whole-archive")
    ]


_OPTIONAL = "output_format object_format get_target_triple compile_sources create_object link_c"


def as_linker(fcompile: Fcompile) -> Linker:
    """Wrap an `fcompile`, whose attributes are all optional, as in TVM."""
    if isinstance(fcompile, Linker):
        return fcompile
    names = [name for name in _OPTIONAL.split() if hasattr(fcompile, name)]
    given: dict[str, Any] = {name: getattr(fcompile, name) for name in names}
    return Linker(fcompile, **given)
