"""Embedders: ways to put the same bytes behind the same symbol. A loader cannot tell which ran.

An embedder takes the chunks of each symbol and a private folder, and writes one input for the
linker that defines them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

from . import c, llvm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from runtime.stream import Chunk

    Symbols = Mapping[str, Sequence[Chunk]]
    Embedder = Callable[[Symbols, Path, str | None], Path]

Embed = Literal["auto", "c", "llvm"]
EMBEDDERS: dict[str, Embedder] = {"c": c.embed, "llvm": llvm.embed}


def find_embedder(name: str) -> Embedder:
    """Return the embedder of this name; ``"auto"`` is llvm where llvmlite is installed, else c.

    Raises
    ------
    ValueError
        There is none of this name.
    """
    if name not in get_args(Embed):
        raise ValueError(f"embed {name!r} is not known; known: {', '.join(get_args(Embed))}")
    if name == "auto":
        name = "llvm" if llvm.is_available() else "c"
    return EMBEDDERS[name]
