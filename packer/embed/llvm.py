"""Embedder ``llvm``: the bytes as an object that LLVM emits (devc.o), without a compiler.

Up to 1 MiB they are a constant in the IR. Beyond, the assembler takes them from a file
(``.incbin``): as a constant 64 MiB take seconds and 700 MB.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from .chunks import nbytes_of, pieces

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from runtime.stream import Chunk

ALIGNMENT = 64
CONSTANT_NBYTES_MAX = 1 << 20

# Beyond this distance, 32-bit relocations of the rest of the library must not lie behind the
# bytes: the large-data sections of the x86-64 psABI are laid out last.
LARGE_NBYTES = 1 << 30


def is_available() -> bool:
    """Whether llvmlite is installed; it is not imported."""
    return find_spec("llvmlite") is not None


def constant_ir(symbol: str, chunks: Sequence[Chunk], triple: str) -> str:
    """The IR of a constant that holds the bytes.

    Parameters
    ----------
    symbol : str
        Its name.
    chunks : sequence of chunks
        Its bytes; all of them stand in the text.
    triple : str
        The target. On Windows the constant is exported from the DLL.
    """
    data = b"".join(pieces(chunks))
    escaped = "".join([_ESCAPES[byte] for byte in data])
    storage = "dllexport " if "windows" in triple else ""
    return f'@{symbol} = {storage}constant [{len(data)} x i8] c"{escaped}", align {ALIGNMENT}\n'


_ESCAPES = [f"\\{byte:02x}" for byte in range(256)]


def incbin_ir(symbol: str, path: Path, nbytes: int, triple: str) -> str:
    """The IR of a module whose assembly takes the bytes from a file."""
    large = nbytes > LARGE_NBYTES and triple.startswith("x86_64")
    section = ".lrodata,\\22al\\22,@progbits" if large else ".rodata,\\22a\\22,%progbits"
    lines = [
        f".section {section}",
        f".globl {symbol}",
        f".type {symbol}, %object",
        f".size {symbol}, {nbytes}",
        f".balign {ALIGNMENT}",
        f"{symbol}:",
        f".incbin \\22{_ir_text(_asm_text(str(path)))}\\22",
    ]
    return "".join(f'module asm "{line}"\n' for line in lines)


def _asm_text(path: str) -> str:
    return path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _ir_text(text: str) -> str:
    return "".join(c if c.isalnum() or c in "/._-" else _ir_escape(c) for c in text)


def _ir_escape(char: str) -> str:
    return "".join(f"\\{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))


def embed(symbols: Mapping[str, Sequence[Chunk]], folder: Path, target: str | None) -> Path:
    """Write ``devc.o``, and return its path; ``devc.s`` where only the target can assemble it."""
    from ..modules.llvm import LLVMModule, default_triple, has_assembly, is_native

    triple = target or default_triple()
    ir = "".join(_symbol_ir(symbol, chunks, folder, triple) for symbol, chunks in symbols.items())
    path = folder / ("devc.o" if is_native(triple) or not has_assembly(ir) else "devc.s")
    LLVMModule(ir, target=triple).save(path)
    return path


def _symbol_ir(symbol: str, chunks: Sequence[Chunk], folder: Path, triple: str) -> str:
    nbytes = nbytes_of(chunks)
    if nbytes <= CONSTANT_NBYTES_MAX:
        return constant_ir(symbol, chunks, triple)
    data = folder / f"{symbol}.bin"
    with data.open("wb") as file:
        file.writelines(pieces(chunks))
    return incbin_ir(symbol, data.absolute(), nbytes, triple)
