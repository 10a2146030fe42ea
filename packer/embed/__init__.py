"""Embedders: ways to store the same bytes at the same symbol. A loader sees no difference.

An embedder has two steps: before the link it writes one input for the linker, and after the link
it may write the bytes into the library.
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

    from runtime.serial.stream import Chunk

    from .ahead import Ahead
    from .copy import Progress

    Symbols = Mapping[str, Sequence[Chunk]]
    WriteLibrary = Callable[[Path, Symbols, str | None, str | None, Progress], None]

__all__ = ["EMBEDDERS", "Embed", "Embedder", "NotPlacedError", "find_embedders"]


def _no_copy(_path: Path, _symbols: Symbols) -> AbstractContextManager[None]:
    return contextlib.nullcontext()


class Embedder(NamedTuple):
    """One way to embed."""

    name: str  # the name that `export_library` accepts
    # ``(symbols, folder, triple, register)`` writes the linker's input to a private folder and
    # returns its path; for a system library the function `register` registers the symbols at
    # start-up.
    prepare: Callable[[Symbols, Path, str | None, str], Path]
    # ``(library, symbols, report, ahead)`` writes the bytes into the linked library. None: the
    # linker's input contains them.
    place: Callable[[Path, Symbols, Progress, Ahead | None], None] | None = None
    # ``(path, symbols)`` returns a context that may copy the bytes to `path` during the link, for
    # `place`.
    copy_ahead: Callable[[Path, Symbols], AbstractContextManager[Ahead | None]] = _no_copy
    # ``(library, symbols, triple, soname, report)`` writes the whole library if there is nothing to
    # link.
    write_library: WriteLibrary | None = None


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


def find_embedders(name: str, *, can_place: bool = True, is_packed: bool = False) -> list[Embedder]:
    """Return the embedders to try: the one of this name, or for ``"auto"`` the best one first.

    `can_place` is true if the output is a library into which bytes can be written after the link;
    it is false for a system library, whose code refers to the bytes. `is_packed` is true if a
    function of the caller embeds instead. Raises ValueError if no embedder has this name, and
    ExportError if it can only write after the link, or if both would embed.
    """
    if name not in get_args(Embed):
        raise ValueError(f"unknown embed {name!r}; known: {', '.join(get_args(Embed))}")
    if is_packed and name != "auto":
        raise ExportError(f"embed {name!r} and fpack_imports, which also embeds; drop one")
    if name != "auto" and EMBEDDERS[name].place and not can_place:
        text = f"embed {name!r}: expected a library as output, found an object, archive, tar or"
        raise ExportError(f"{text} system library; use embed='auto', 'llvm' or 'c'")
    if name != "auto":
        return [EMBEDDERS[name]]
    best = ["segment"] if can_place else []
    return [EMBEDDERS[name] for name in [*best, "llvm" if llvm.is_available() else "c"]]
