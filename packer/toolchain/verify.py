"""Read back what the linker made: a compiler that lies is found out before anything is replaced."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

from runtime._core import ElfFile
from runtime.abi import CHECKSUMS
from runtime.error import LibraryLoadError, ToolchainError

from ..files.chunks import nbytes_of, pieces
from ..target import find_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from runtime.stream import Chunk

    from .formats import Made


def verify_output(
    path: Path,
    made: Made,
    required: Iterable[str],
    symbols: Mapping[str, Sequence[Chunk]],
    linked: Mapping[str, Sequence[Chunk]],
) -> None:
    """Check the symbols and the embedded bytes of an output that was just made.

    Parameters
    ----------
    path : Path
        The output; it is not loaded.
    made : Made
        What it defines.
    required : iterable of str
        The symbols that it must define.
    symbols : mapping of str to chunks
        The data symbols that it must define, with so many bytes.
    linked : mapping of str to chunks
        Those of them whose bytes a linker had in hand, so that all are compared. Of what we
        copied ourselves only the first chunk is read again: the header of a blob.

    Raises
    ------
    ToolchainError
        Something is missing or is not what was asked for.
    """
    required = list(required)
    for symbol in required:
        _require(made, symbol)
    for symbol, chunks in symbols.items():
        offset, nbytes = _require(made, symbol)
        if nbytes != nbytes_of(chunks) or offset is None:
            text = (
                f"symbol {symbol} has {nbytes if offset is not None else 'no'} bytes in the result"
            )
            raise ToolchainError(f"{text}, expected {nbytes_of(chunks)}")
        _compare(path, symbol, offset, chunks if symbol in linked else chunks[:1])
    if isinstance(made, ElfFile):
        for symbol in {*required, *symbols}:
            if symbol.endswith(CHECKSUMS):
                _verify_checksums(made, symbol)


def refuse_undefined(made: Made, functions: Iterable[str]) -> None:
    """Refuse a library whose own functions its linker left to others: no load would find them.

    glue.h asks for protected symbols, which only the object itself may define (gABI, Symbol
    Visibility); mold links one that nothing defines, all the same.

    Raises
    ------
    ToolchainError
        Names them.
    """
    missing = {*made.undefined()}.intersection(functions) if isinstance(made, ElfFile) else None
    if missing:
        names = ", ".join(sorted(missing))
        raise ToolchainError(f"declared, but defined by no source, or as static: {names}")


def check_linked(path: Path, target: str | None) -> ElfFile:
    """Check that what a linker made is a well-formed library for its target.

    Raises
    ------
    ToolchainError
        It is not.
    """
    try:
        return ElfFile(str(path), find_target(target).machine.e_machine)
    except LibraryLoadError as error:
        what = str(error).removeprefix(f"{path}: ")
        raise ToolchainError(
            f"the linker exited with 0, but its output is wrong: {what}"
        ) from error


def _require(made: Made, symbol: str) -> tuple[int | None, int]:
    try:
        found = made.symbol(symbol)
    except LibraryLoadError as error:
        raise ToolchainError(f"symbol {symbol} is wrong in the result: {error}") from error
    if found is None:
        raise ToolchainError(
            f"symbol {symbol} is missing in the result: an option (a version script, "
            f"--gc-sections, LTO) dropped it, or the compiler returned another file"
        )
    return found


def _verify_checksums(made: ElfFile, symbol: str) -> None:
    try:
        made.checksums(symbol)
    except LibraryLoadError as error:
        raise ToolchainError(f"a stale object was linked: {error}") from error


def _compare(path: Path, symbol: str, offset: int, chunks: Sequence[Chunk]) -> None:
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        for piece in pieces(chunks):
            if mapped[offset : offset + len(piece)] != piece:
                text = f"symbol {symbol} holds other bytes in the result: a stale object was linked"
                raise ToolchainError(text)
            offset += len(piece)
