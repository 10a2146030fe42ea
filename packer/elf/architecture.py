"""For which NVIDIA architectures device code was compiled, read from its bytes.

ptx      ".target sm_80"                 any device of that capability or a later one
cubin    ELF, e_machine 190, e_flags     devices of the same generation, not older
fatbin   a list of both
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from struct import Struct
from typing import NamedTuple

_PTX_TARGET = re.compile(rb"^\s*\.target\s+sm_(\d{2,3})([af]?)\b", re.MULTILINE)
_HEAD = 1 << 16
_EM_CUDA = 190
_E_FLAGS = slice(48, 52)
_FATBIN_MAGIC = b"\x50\xed\x55\xba"
# fatbinary: magic, version, header bytes, payload bytes; then for each entry kind, version, header
# bytes, payload bytes, and behind 12 more bytes the architecture, behind 8 more flags.
_FATBIN = Struct("<IHHQ")
_FATBIN_ENTRY = Struct("<HHIQ12xI8xQ")
_KINDS = {1: "ptx", 2: "cubin"}
_SUFFIXES = {0x100000: "a", 0x200000: "f"}
_MAX_ENTRIES = 1024


class Architecture(NamedTuple):
    """What one piece of device code was compiled for.

    Attributes
    ----------
    kind : str
        ``"ptx"`` or ``"cubin"``.
    capability : int
        As NVIDIA writes it: 80, 103.
    suffix : str
        ``"a"``: this architecture alone; ``"f"``: its family; else empty.
    """

    kind: str
    capability: int
    suffix: str = ""

    def __str__(self) -> str:
        return f"{self.kind} sm_{self.capability}{self.suffix}"

    def runs_on(self, capability: int) -> bool:
        """Whether a device of that capability takes it."""
        if self.suffix == "a":
            return capability == self.capability
        if self.suffix == "f" or self.kind == "cubin":
            return capability // 10 == self.capability // 10 and capability >= self.capability
        return capability >= self.capability


def architectures_of(data: memoryview) -> list[Architecture]:
    """Read for what device code was compiled; nothing where it does not say."""
    magic = bytes(data[:4])
    if magic == _FATBIN_MAGIC:
        return list(_of_fatbin(data))
    if magic == b"\x7fELF":
        return list(_of_cubin(bytes(data[:64])))
    match = _PTX_TARGET.search(bytes(data[:_HEAD]))
    return [Architecture("ptx", int(match[1]), match[2].decode())] if match else []


def _of_cubin(head: bytes) -> Iterator[Architecture]:
    if len(head) == 64 and int.from_bytes(head[18:20], "little") == _EM_CUDA:
        flags = int.from_bytes(head[_E_FLAGS], "little")
        # From EI_ABIVERSION 8 (CUDA 13) on number and suffix have another place.
        is_13 = head[8] >= 8
        suffix = "a" if flags & (0x8 if is_13 else 0x800) else ""
        yield Architecture("cubin", (flags >> 8 if is_13 else flags) & 0xFF, suffix)


def _of_fatbin(data: memoryview) -> Iterator[Architecture]:
    if len(data) < _FATBIN.size:
        return
    _, _, header, nbytes = _FATBIN.unpack_from(data)
    offset, end = header, min(header + nbytes, len(data))
    for _ in range(_MAX_ENTRIES):
        if offset + _FATBIN_ENTRY.size > end:
            return
        kind, _, header, nbytes, capability, flags = _FATBIN_ENTRY.unpack_from(data, offset)
        if kind in _KINDS:
            yield Architecture(_KINDS[kind], capability, _SUFFIXES.get(flags & 0x300000, ""))
        if header + nbytes == 0:
            return
        offset += header + nbytes
