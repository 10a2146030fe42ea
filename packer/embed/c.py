"""Embedder ``c``: the bytes as a C array, in the text that TVM writes (dev.cc).

Any C or C++ compiler accepts it, for any object format, unless the array is large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.error import ExportError

from ..files.chunks import nbytes_of, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from runtime.serial.stream import Chunk

# For a C array of 16 MB g++ needs half a minute and 2 GB.
MAX_NBYTES = 16 << 20
_BYTES_PER_LINE = 20
_HEX = [f"0x{byte:x}" for byte in range(256)]

_HEAD = """\
#ifdef _WIN32
#define TVM_EXPORT __declspec(dllexport)
#else
#define TVM_EXPORT
#endif
#ifdef __cplusplus
extern "C" {
#endif
"""
_TAIL = """\
#ifdef __cplusplus
}
#endif
"""


def array_text(symbol: str, chunks: Sequence[Chunk], *, register: str = "") -> Iterator[str]:
    """Write the C text of an array, piece by piece.

    For a system library the text also registers the array at start-up, by the function `register`.
    """
    yield _HEAD
    yield f"TVM_EXPORT extern const unsigned char {symbol}[];\n"
    yield f"const unsigned char {symbol}[{nbytes_of(chunks)}] = {{\n"
    yield from _lines(chunks)
    yield "\n};\n"
    if register:
        yield f"extern int {register}(const char*, void*);\n"
        yield f"static int {symbol}_reg_ = "
        yield f'{register}("{symbol}", (void*){symbol});\n'
    yield _TAIL


def _lines(chunks: Sequence[Chunk]) -> Iterator[str]:
    separator, rest = "  ", b""
    for piece in pieces(chunks):
        data = rest + piece
        whole = len(data) - len(data) % _BYTES_PER_LINE
        for start in range(0, whole, _BYTES_PER_LINE):
            yield separator + ",".join([_HEX[b] for b in data[start : start + _BYTES_PER_LINE]])
            separator = ",\n  "
        rest = data[whole:]
    if rest:
        yield separator + ",".join([_HEX[b] for b in rest])


def prepare(
    symbols: Mapping[str, Sequence[Chunk]], folder: Path, triple: str | None, register: str = ""
) -> Path:
    """Write ``devc.c``, or ``devc.cc`` for a system library: its registration is C++.

    Raises ExportError if there are too many bytes for a compiler.
    """
    del triple  # a C compiler knows its target
    nbytes = sum(map(nbytes_of, symbols.values()))
    if nbytes > MAX_NBYTES:
        text = f"embed 'c': {nbytes} bytes, expected at most {MAX_NBYTES}, the largest array for"
        first = "" if register else "embed='segment' for a library, or "
        raise ExportError(f"{text} compilers; use {first}embed='llvm'")
    path = folder / ("devc.cc" if register else "devc.c")
    with path.open("w", encoding="ascii") as file:
        for symbol, chunks in symbols.items():
            file.writelines(array_text(symbol, chunks, register=register))
    return path
