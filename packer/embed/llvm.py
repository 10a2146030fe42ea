"""Embedder ``llvm``: the bytes as an object that LLVM emits (devc.o), without a compiler.

Up to 1 MiB are a constant in the IR. The assembler includes more bytes from a file (``.incbin``),
since a constant of 64 MiB takes seconds and 700 MB. LLVM's assembler is used up to 1 GiB and for
this machine's architecture, else the target's compiler. Its input is devc.s, or devc.c for a
system library, since other assemblers do not accept LLVM's newest directives.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from ..elf.notes import property_note
from ..files.chunks import nbytes_of, pieces
from ..target import find_target

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from runtime.serial.stream import Chunk

    from ..machine import Machine
    from ..target import Target

ALIGNMENT = 64
CONSTANT_NBYTES_MAX = 1 << 20

# More bytes must follow the rest of the library, which 32-bit relocations would not reach across
# them: the x86-64 psABI places large-data sections last.
LARGE_NBYTES = 1 << 30


def is_available() -> bool:
    """Return True if llvmlite is installed, without importing it."""
    return find_spec("llvmlite") is not None


def constant_ir(symbol: str, chunks: Sequence[Chunk], triple: str) -> str:
    """Return the IR of a constant that contains the bytes.

    On Windows the DLL exports the constant.
    """
    data = b"".join(pieces(chunks))
    escaped = "".join([_ESCAPES[byte] for byte in data])
    storage = "dllexport " if "windows" in triple else ""
    return f'@{symbol} = {storage}constant [{len(data)} x i8] c"{escaped}", align {ALIGNMENT}\n'


# LLVM's names for the features of `Machine.marks`; 8 below is "min": all modules need them.
_MARKS = {
    "x86_64": ("cf-protection-branch", "cf-protection-return"),
    "aarch64": ("branch-target-enforcement", "sign-return-address"),
}
_ESCAPES = [f"\\{byte:02x}" for byte in range(256)]


def incbin_lines(symbol: str, path: Path, nbytes: int, triple: str) -> list[str]:
    """Return assembly that defines a symbol by the bytes of a file, for GNU as and LLVM."""
    is_large = nbytes > LARGE_NBYTES and triple.startswith("x86_64")
    # GNU as miscounts a single .incbin of 2 GiB or more.
    starts = range(0, nbytes, LARGE_NBYTES)
    name = _quoted(str(path))
    return [
        '.section .lrodata,"al",@progbits' if is_large else '.section .rodata,"a",%progbits',
        f".globl {symbol}",
        f".type {symbol}, %object",
        f".size {symbol}, {nbytes}",
        f".balign {ALIGNMENT}",
        f"{symbol}:",
        *(f".incbin {name},{start},{min(LARGE_NBYTES, nbytes - start)}" for start in starts),
    ]


def module_assembly(lines: Sequence[str]) -> str:
    """Return IR that contains lines of assembly."""
    return "".join(f'module asm "{_ir_escaped(line)}"\n' for line in lines)


def _quoted(text: str) -> str:
    """Return a string literal of C and of assemblers."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _ir_escaped(text: str) -> str:
    data = text.encode("utf-8", "surrogateescape")
    plain = bytes(c for c in range(32, 127) if c not in b'"\\')
    return "".join(chr(byte) if byte in plain else _ESCAPES[byte] for byte in data)


def registration_ir(symbols: Iterable[str], register: str) -> str:
    """Return the IR of a constructor that registers symbols, as the C text does."""
    names, calls = [], []
    for index, symbol in enumerate(symbols):
        name = f"{symbol}\0".encode()
        text = "".join(_ESCAPES[byte] for byte in name)
        names.append(f'@packer_name{index} = private constant [{len(name)} x i8] c"{text}"\n')
        call = f"@{register}(ptr @packer_name{index}, ptr @{symbol})"
        calls.append(f"  call i32 {call}\n")
    return (
        "".join(names) + "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
        "[{ i32, ptr, ptr } { i32 65535, ptr @packer_register, ptr null }]\n"
        f"declare i32 @{register}(ptr, ptr)\n"
        "define internal void @packer_register() {\n" + "".join(calls) + "  ret void\n}\n"
    )


def registration_c(lines: Iterable[str], symbols: Iterable[str], register: str) -> str:
    """Return C text of the same constructor, with the assembly that defines the symbols."""
    assembly = "".join(f"    {_quoted(line + chr(10))}\n" for line in lines)
    calls = "".join(
        f'  extern const char {symbol}[];\n  (void){register}("{symbol}", (void *){symbol});\n'
        for symbol in symbols
    )
    return (
        f'__asm__(\n{assembly}    ".text");\n'
        f"int {register}(const char *, void *);\n"
        f"__attribute__((constructor)) static void packer_register(void) {{\n{calls}}}\n"
    )


def prepare(
    symbols: Mapping[str, Sequence[Chunk]], folder: Path, triple: str | None, register: str = ""
) -> Path:
    """Write ``devc.o``, or a file for the target's assembler if LLVM cannot emit the object."""
    from .llvm_code import is_native

    target = find_target(triple)
    nbytes_max = LARGE_NBYTES if is_native(target.llvm) else CONSTANT_NBYTES_MAX
    if max(map(nbytes_of, symbols.values())) > nbytes_max:
        return _write_assembly(symbols, folder, target, register)
    return _write_object(symbols, folder, target, register)


def _write_object(
    symbols: Mapping[str, Sequence[Chunk]], folder: Path, target: Target, register: str
) -> Path:
    from .llvm_code import emit, parse_ir

    parts = [
        _definition(symbol, chunks, folder, target.llvm, is_used=bool(register))
        for symbol, chunks in symbols.items()
    ]
    path = folder / "devc.o"
    registration = registration_ir(symbols, register) if register else ""
    ir = "".join([*parts, registration, *_mark_lines(target.machine)])
    path.write_bytes(emit(parse_ir(ir), "o", target.llvm))
    return path


def _write_assembly(
    symbols: Mapping[str, Sequence[Chunk]], folder: Path, target: Target, register: str
) -> Path:
    lines = [
        line
        for symbol, chunks in symbols.items()
        for line in _incbin(symbol, chunks, folder, target.llvm)
    ]
    if register:
        path, text = folder / "devc.c", registration_c(lines, symbols, register)
    else:
        note = ",".join(map(str, property_note(target.machine)))
        if note:
            lines += ['.section .note.gnu.property,"a",%note', ".balign 8", f".byte {note}"]
        lines += ['.section .note.GNU-stack,"",%progbits', ""]
        path, text = folder / "devc.s", "\n".join(lines)
    path.write_bytes(os.fsencode(text))
    return path


def _definition(
    symbol: str, chunks: Sequence[Chunk], folder: Path, triple: str, *, is_used: bool
) -> str:
    nbytes = nbytes_of(chunks)
    if nbytes <= CONSTANT_NBYTES_MAX:
        return constant_ir(symbol, chunks, triple)
    lines = _incbin(symbol, chunks, folder, triple)
    declaration = f"@{symbol} = external constant [{nbytes} x i8]\n" if is_used else ""
    return module_assembly(lines) + declaration


def _mark_lines(machine: Machine) -> list[str]:
    """Module flags: LLVM then writes the note about landing pads and shadow stacks."""
    flags = _MARKS.get(machine.name, ())
    nodes = [f'!{i} = !{{i32 8, !"{flag}", i32 1}}\n' for i, flag in enumerate(flags)]
    names = ", ".join(f"!{i}" for i in range(len(flags)))
    return [*nodes, f"!llvm.module.flags = !{{{names}}}\n"] if flags else []


def _incbin(symbol: str, chunks: Sequence[Chunk], folder: Path, triple: str) -> list[str]:
    path = folder.absolute() / f"{symbol}.bin"
    with path.open("wb") as file:
        file.writelines(pieces(chunks))
    return incbin_lines(symbol, path, nbytes_of(chunks), triple)
