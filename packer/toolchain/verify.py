"""Read back what the linker wrote, so that a wrong output is found before it replaces a file."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

from runtime._core import ElfFile
from runtime.abi import CHECKSUMS
from runtime.error import LibraryLoadError, ToolchainError

from ..files.chunks import nbytes_of, pieces
from ..target import find_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from runtime.serial.stream import Chunk

    from .formats import Made


def verify_output(
    path: Path,
    made: Made,
    required: Iterable[str],
    symbols: Mapping[str, Sequence[Chunk]],
    linked: Mapping[str, Sequence[Chunk]],
) -> None:
    """Check the symbols and the embedded bytes of an output, without loading it.

    The output must define the `required` symbols, and the data `symbols` with their bytes. All
    bytes are compared of the `linked` ones of those, which a linker could change. Of the bytes that
    packer copied only the first chunk is compared: the header of a blob. Raises ToolchainError if a
    symbol is missing or wrong.
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


def refuse_undefined(
    made: Made, functions: Iterable[str], explain: Callable[[Iterable[str]], str]
) -> None:
    """Refuse a library whose declared functions are undefined: no load would find them.

    glue.h makes the symbols protected, so that only the library may define them (gABI, Symbol
    Visibility); but mold links undefined ones without an error. Raises ToolchainError if there are
    any; ``explain(names)`` is its text.
    """
    missing = {*made.unbound()}.intersection(functions) if isinstance(made, ElfFile) else None
    if missing:
        raise ToolchainError(explain(missing))


def check_linked(path: Path, triple: str | None) -> ElfFile:
    """Check that the output of a linker is a well-formed library for its target.

    Raises ToolchainError if it is not.
    """
    try:
        return ElfFile(str(path), find_target(triple).machine.e_machine)
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
                text = f"symbol {symbol} has other bytes in the result: a stale object was linked"
                raise ToolchainError(text)
            offset += len(piece)
