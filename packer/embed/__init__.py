"""Embedders: ways to put the same bytes behind the same symbol. A loader cannot tell which ran.

An embedder is two acts: from the chunks of each symbol it makes one input for the linker, and it
may have something to do once that has run.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from runtime.error import ExportError

from . import c, llvm, segment, shared_object
from .segment import NotPlacedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from runtime.stream import Chunk

    from .ahead import Ahead
    from .copy import Report

    Symbols = Mapping[str, Sequence[Chunk]]

__all__ = ["EMBEDDERS", "Embed", "Embedder", "NotPlacedError", "find_embedders"]


def _no_copy(_path: Path, _symbols: Symbols) -> AbstractContextManager[None]:
    return contextlib.nullcontext()


class Embedder(NamedTuple):
    """One way to embed.

    Attributes
    ----------
    name : str
        What `export_library` calls it.
    prepare : callable
        ``(symbols, folder, target, system_lib)`` gives the linker's input, in that private
        folder; for a system library it registers the symbols at start-up.
    place : callable or None
        ``(library, symbols, report, ahead)`` puts the bytes into what the linker made. None: they
        went through the linker, which may have done anything to them.
    copy_ahead : callable
        ``(path, symbols)`` gives a context in which a copy of them to `path` may be under way,
        for `place`.
    write_library : callable or None
        ``(library, symbols, target, report)`` makes the whole library where nothing is linked.
    """

    name: str
    prepare: Callable[[Symbols, Path, str | None, bool], Path]
    place: Callable[[Path, Symbols, Report, Ahead | None], None] | None = None
    copy_ahead: Callable[[Path, Symbols], AbstractContextManager[Ahead | None]] = _no_copy
    write_library: Callable[[Path, Symbols, str | None, Report], None] | None = None


Embed = Literal["auto", "c", "llvm", "segment"]
EMBEDDERS = {
    embedder.name: embedder
    for embedder in (
        Embedder("c", c.prepare),
        Embedder("llvm", llvm.prepare),
        Embedder(
            "segment",
            segment.prepare,
            segment.place,
            segment.copy_ahead,
            shared_object.write_library,
        ),
    )
}


def find_embedders(name: str, *, can_place: bool = True) -> list[Embedder]:
    """Return the embedders to try: the one of this name, or for ``"auto"`` the best one first.

    Parameters
    ----------
    name : str
        As `export_library` takes it.
    can_place : bool
        Whether the output is a library, in which bytes can be placed once it is linked; not a
        system library, whose code refers to them.

    Raises
    ------
    ValueError
        There is none of this name.
    ExportError
        It places bytes, which cannot be.
    """
    if name not in get_args(Embed):
        raise ValueError(f"embed {name!r} is not known; known: {', '.join(get_args(Embed))}")
    if name != "auto" and EMBEDDERS[name].place and not can_place:
        text = f"embed {name!r} works on a linked library that registers nothing"
        text += ", expected 'auto', 'llvm' or 'c' for an object, archive, tar or system library"
        raise ExportError(text)
    if name != "auto":
        return [EMBEDDERS[name]]
    best = ["segment"] if can_place else []
    return [EMBEDDERS[name] for name in [*best, "llvm" if llvm.is_available() else "c"]]
