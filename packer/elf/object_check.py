"""The target that object files were compiled for, read from their heads before a link.

Checked are ELF objects and libraries, archives of them, also thin ones, and LLVM bitcode. Other
inputs of a linker, such as sources and linker scripts, name no machine and are skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runtime.error import ExportError

from ..files.text import path_error, shown_path
from ..machine import EM_RISCV
from ..target import machine_word
from .archive import MAGIC, THIN_MAGIC, member_heads
from .structures import EI_CLASS, EI_DATA, ELF_MAGIC, ELFCLASS64, ELFDATA2LSB

if TYPE_CHECKING:
    from ..files.arguments import PathLike
    from ..target import Target

_HEAD_NBYTES = 64
# RISC-V psABI: EF_RISCV_FLOAT_ABI 6, and EF_RISCV_RVE 8 for half the registers.
_ABI_FLAGS = 6 | 8
_FLOATS = {0: "soft-float", 2: "single-float", 4: "double-float", 6: "quad-float"}
# Object files of other systems, by their first bytes: Mach-O, and COFF by machine.
_FOREIGN = {
    b"\xcf\xfa\xed\xfe": "a Mach-O object (macOS)",
    b"\xca\xfe\xba\xbe": "a Mach-O object (macOS)",
    b"\x64\x86": "a COFF object (Windows) for x86_64",
    b"\x64\xaa": "a COFF object (Windows) for aarch64",
    b"\x4c\x01": "a COFF object (Windows) for i386",
}
BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")


def check_objects(paths: Iterable[PathLike], target: Target) -> None:
    """Refuse inputs of a linker that are for another target, or cannot be read (ExportError)."""
    for path in paths:
        try:
            _check_file(Path(path), target)
        except OSError as error:
            raise path_error(path, f"cannot be read: {error.strerror}") from error


def check_triple(triple: str, target: Target, where: str) -> None:
    """Refuse IR that names the triple of another target (ExportError)."""
    words = triple.split("-")[1:]
    is_foreign = any(w.startswith(("windows", "win32", "mingw", "darwin", "macos")) for w in words)
    if is_foreign or machine_word(triple) != target.machine:
        text = f"compiled for {triple!r}, expected {target.triple!r}, the target of the library"
        raise ExportError(f"{where}: {text}", path=where)


def _check_file(path: Path, target: Target) -> None:
    with path.open("rb") as file:
        head = file.read(_HEAD_NBYTES)
        if head.startswith((MAGIC, THIN_MAGIC)):
            for name, member in member_heads(file, path, _HEAD_NBYTES):
                _check_head(member, f"{shown_path(path)}({shown_path(name)})", target)
        elif head.startswith(BITCODE):
            _check_bitcode(head + file.read(), shown_path(path), target)
        else:
            _check_head(head, shown_path(path), target)


def _check_head(head: bytes, where: str, target: Target) -> None:
    found: str | _Kind = ""
    expected: str | _Kind = ""
    if head.startswith(ELF_MAGIC) and len(head) == _HEAD_NBYTES:
        machine = target.machine
        found = _read_kind(head)
        expected = _kind_of(64, "little", machine.e_machine, machine.e_flags)
    elif not head.startswith((*BITCODE, b"#")):
        systems = (what for magic, what in _FOREIGN.items() if head.startswith(magic))
        found, expected = next(systems, ""), f"an ELF object for {target.machine.name}"
    if found and found != expected:
        text = f"{where}: {found}, expected {expected} for the target {target.triple!r}"
        raise ExportError(text, path=where)


class _Kind(NamedTuple):
    """The properties that all objects must share; `abi` is the floating-point ABI of RISC-V."""

    bits: int
    order: str
    e_machine: int
    abi: int

    def __str__(self) -> str:
        from elftools.elf.enums import ENUM_E_MACHINE  # slow to import, for messages only

        names = {number: name for name, number in ENUM_E_MACHINE.items()}
        name = names.get(self.e_machine, f"e_machine {self.e_machine}")
        text = f"{name.removeprefix('EM_').lower()} ({self.bits}-bit {self.order}-endian"
        if self.e_machine == EM_RISCV:
            text += f", {_FLOATS[self.abi & 6]}{', 16 registers' if self.abi & 8 else ''}"
        return f"{text})"


def _kind_of(bits: int, order: str, e_machine: int, e_flags: int) -> _Kind:
    return _Kind(bits, order, e_machine, e_flags & _ABI_FLAGS if e_machine == EM_RISCV else 0)


def _read_kind(head: bytes) -> _Kind:
    """Read an ELF header of any class and byte order."""
    bits = 64 if head[EI_CLASS] == ELFCLASS64 else 32
    order = "little" if head[EI_DATA] == ELFDATA2LSB else "big"
    layout = f"{'<' if order == 'little' else '>'}16s2xHI{'3Q' if bits == 64 else '3I'}I"
    _, e_machine, _, _, _, _, e_flags = struct.unpack_from(layout, head)
    return _kind_of(bits, order, e_machine, e_flags)


def _check_bitcode(data: bytes, where: str, target: Target) -> None:
    """Check bitcode for LTO; bitcode of a newer LLVM is left to the linker."""
    try:
        from llvmlite import binding

        triple = str(binding.parse_bitcode(data).triple)
    except (ImportError, RuntimeError):
        return
    if triple:
        check_triple(triple, target, where)
