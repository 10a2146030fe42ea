"""Damage a good library in many ways: cut, bits flipped, wrong headers. Always the same ways.

python -m tests.packer.inspect.damage model.so FOLDER      writes each damaged file into a folder
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

from ...support.elf_poke import DT, PT, Elf, Record

_LIES = (0, 1, 7, 0x7FFF, 2**31, 2**32 - 1)
_HEADER = ("e_phoff", "e_shoff", "e_phentsize", "e_phnum", "e_shentsize", "e_shnum", "e_shstrndx")
_PROGRAM = ("p_offset", "p_vaddr", "p_filesz", "p_memsz", "p_flags")
_NUM_FLIPPED = 60


def damaged(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield each damaged file with a name that describes the damage."""
    for part in range(1, 32):
        yield f"cut-{part}", data[: len(data) * part // 32]
    yield from _flipped(data)
    yield from _wrong_headers(data)
    yield from _wrong_tags(data)


def _flipped(data: bytes) -> Iterator[tuple[str, bytes]]:
    """Bits of the first pages, where the tables are, and of anywhere."""
    chance = random.Random(8)
    for number in range(_NUM_FLIPPED):
        flipped = bytearray(data)
        reach = min(len(data), 4096) if number % 2 else len(data)
        for _ in range(chance.randint(1, 16)):
            flipped[chance.randrange(reach)] ^= 1 << chance.randrange(8)
        yield f"flip-{number}", bytes(flipped)


def _wrong_headers(data: bytes) -> Iterator[tuple[str, bytes]]:
    for field in _HEADER:
        for value in _LIES[:4]:  # most fields of the ELF header have 16 bits
            yield f"{field}-{value}", _poked(data, Elf(data).header, field, value)
    for name in PT:
        for nth, record in enumerate(Elf(data).programs(name)):
            for field in _PROGRAM:
                for value in _LIES:
                    yield f"{name}{nth}-{field}-{value}", _poked(data, record, field, value)


def _wrong_tags(data: bytes) -> Iterator[tuple[str, bytes]]:
    for name in DT:
        try:
            record = Elf(data).tag(name)
        except StopIteration:
            continue
        for value in _LIES:
            yield f"{name}-{value}", _poked(data, record, "d_val", value)


def _poked(data: bytes, record: Record, field: str, value: int) -> bytes:
    return bytes(Elf(data).poke(record, field, value).data)


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    folder.mkdir(exist_ok=True)
    for file_name, content in damaged(Path(sys.argv[1]).read_bytes()):
        (folder / f"{file_name}.so").write_bytes(content)
