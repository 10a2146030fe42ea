"""Embedders: ways to put the same bytes behind the same symbol. A loader cannot tell which ran.

An embedder is two acts: from the chunks of each symbol it makes one input for the linker, and it
may have something to do once that has run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from . import c, llvm, segment, shared_object
from .segment import NotPlacedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from runtime.stream import Chunk

    from .copy import Report

    Symbols = Mapping[str, Sequence[Chunk]]

__all__ = ["EMBEDDERS", "Embed", "Embedder", "NotPlacedError", "find_embedders"]


class Embedder(NamedTuple):
    """One way to embed.

    Attributes
    ----------
    name : str
        What `export_library` calls it.
    prepare : callable
        ``(symbols, folder, target)`` gives the linker's input, in that private folder.
    place : callable or None
        ``(library, symbols, report)`` puts the bytes into what the linker made. None: they went
        through the linker, which may have done anything to them.
    write_library : callable or None
        ``(library, symbols, target, report)`` makes the whole library where nothing is linked.
    """

    name: str
    prepare: Callable[[Symbols, Path, str | None], Path]
    place: Callable[[Path, Symbols, Report], None] | None = None
    write_library: Callable[[Path, Symbols, str | None, Report], None] | None = None


Embed = Literal["auto", "c", "llvm", "segment"]
EMBEDDERS = {
    embedder.name: embedder
    for embedder in (
        Embedder("c", c.prepare),
        Embedder("llvm", llvm.prepare),
        Embedder("segment", segment.prepare, segment.place, shared_object.write_library),
    )
}


def find_embedders(name: str) -> list[Embedder]:
    """Return the embedders to try: the one of this name, or for ``"auto"`` the best one first.

    Raises
    ------
    ValueError
        There is none of this name.
    """
    if name not in get_args(Embed):
        raise ValueError(f"embed {name!r} is not known; known: {', '.join(get_args(Embed))}")
    if name != "auto":
        return [EMBEDDERS[name]]
    return [EMBEDDERS[name] for name in ("segment", "llvm" if llvm.is_available() else "c")]
