"""For which target object files are: read from their heads, before a linker sees them.

ELF objects and libraries, archives of them (the "thin" kind too) and LLVM bitcode. Whatever else a
linker takes, sources and its own scripts among it, says nothing of a machine, and is passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.error import ExportError

from ..files.text import shown_path
from ..target import machine_word
from .archive import MAGIC, THIN_MAGIC, read_archive, thin_members

if TYPE_CHECKING:
    from ..files.arguments import PathLike
    from ..target import Machine, Target

_HEAD_NBYTES = 64
# gABI, ELF Header, from e_ident to e_machine and on to e_flags; e_ident says class and byte order.
_ELF = b"\x7fELF"
_EI_CLASS, _EI_DATA, _ELFCLASS64, _ELFDATA2LSB = 4, 5, 2, 1
_NAMES = {
    2: "sparc", 3: "i386", 8: "mips", 20: "powerpc", 21: "powerpc64", 22: "s390", 40: "arm",
    43: "sparcv9", 62: "x86_64", 183: "aarch64", 190: "NVIDIA cuda", 243: "riscv", 258: "loongarch",
}  # fmt: skip
# RISC-V psABI: EF_RISCV_FLOAT_ABI 6, and EF_RISCV_RVE 8 for half the registers.
_FLOATS = {0: "soft-float", 2: "single-float", 4: "double-float", 6: "quad-float"}
_EM_RISCV = 243
# Object files of other systems, by how they begin: Mach-O, and COFF for the machines it has.
_FOREIGN = {
    b"\xcf\xfa\xed\xfe": "a Mach-O object (macOS)",
    b"\xca\xfe\xba\xbe": "a Mach-O object (macOS)",
    b"\x64\x86": "a COFF object (Windows) for x86_64",
    b"\x64\xaa": "a COFF object (Windows) for aarch64",
    b"\x4c\x01": "a COFF object (Windows) for i386",
}
_BITCODE = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")


def check_objects(paths: Iterable[PathLike], target: Target) -> None:
    """Refuse object files that are for another target.

    Parameters
    ----------
    paths : iterable of path
        What a linker is to get.
    target : Target
        What it links for.

    Raises
    ------
    ExportError
        A file, or a member of an archive, is for another machine, word size, byte order or
        floating-point ABI: names both. Or it cannot be read.
    """
    for path in paths:
        try:
            _check_file(Path(path), target)
        except OSError as error:
            text = f"{shown_path(path)}: cannot be read: {error.strerror}"
            raise ExportError(text, path=os.fspath(path)) from error


def check_triple(triple: str, target: Target, where: str) -> None:
    """Refuse IR that names the triple of another target.

    Raises
    ------
    ExportError
        It does; names both.
    """
    words = triple.split("-")[1:]
    is_foreign = any(w.startswith(("windows", "win32", "mingw", "darwin", "macos")) for w in words)
    if is_foreign or machine_word(triple) != target.machine:
        text = f"made for {triple!r}, expected {target.triple!r}, which the library is for"
        raise ExportError(f"{where}: {text}", path=where)


def _check_file(path: Path, target: Target) -> None:
    head = _head_at(path, 0)
    if head.startswith(THIN_MAGIC):
        for member in thin_members(path):
            _check_head(_head_at(member, 0), f"{shown_path(path)}({member.name})", target)
    elif head.startswith(MAGIC):
        for name, offset, nbytes in read_archive(path):
            head = _head_at(path, offset)[:nbytes]
            _check_head(head, f"{shown_path(path)}({shown_path(name)})", target)
    elif head.startswith(_BITCODE):
        _check_bitcode(path.read_bytes(), shown_path(path), target)
    else:
        _check_head(head, shown_path(path), target)


def _head_at(path: Path, offset: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(_HEAD_NBYTES)


def _check_head(head: bytes, where: str, target: Target) -> None:
    found = expected = ""
    if head.startswith(_ELF) and len(head) == _HEAD_NBYTES:
        found, expected = _described(head), _described(_head_of(target.machine))
    elif not head.startswith((*_BITCODE, b"#")):
        kinds = (kind for magic, kind in _FOREIGN.items() if head.startswith(magic))
        found, expected = next(kinds, ""), f"an ELF object for {target.machine.name}"
    if found and found != expected:
        text = f"{where}: {found}, expected {expected} for the target {target.triple!r}"
        raise ExportError(text, path=where)


def _described(head: bytes) -> str:
    """What must be alike in all objects: machine, class, byte order, floating-point ABI."""
    order = "little" if head[_EI_DATA] == _ELFDATA2LSB else "big"
    bits = 64 if head[_EI_CLASS] == _ELFCLASS64 else 32
    number = int.from_bytes(head[18:20], order)  # type: ignore[arg-type]
    start = 48 if bits == 64 else 36
    flags = int.from_bytes(head[start : start + 4], order)  # type: ignore[arg-type]
    text = f"{_NAMES.get(number, f'e_machine {number}')} ({bits}-bit {order}-endian"
    if number == _EM_RISCV:
        text += f", {_FLOATS[flags & 6]}{', 16 registers' if flags & 8 else ''}"
    return f"{text})"


def _head_of(machine: Machine) -> bytes:
    """The head of an object as it should be."""
    head = bytearray(_HEAD_NBYTES)
    head[_EI_CLASS], head[_EI_DATA] = _ELFCLASS64, _ELFDATA2LSB
    head[18:20] = machine.e_machine.to_bytes(2, "little")
    head[48:52] = machine.e_flags.to_bytes(4, "little")
    return bytes(head)


def _check_bitcode(data: bytes, where: str, target: Target) -> None:
    """For LTO; bitcode that is newer than ours the linker alone can read."""
    try:
        from llvmlite import binding

        triple = str(binding.parse_bitcode(data).triple)
    except (ImportError, RuntimeError):
        return
    if triple:
        check_triple(triple, target, where)
