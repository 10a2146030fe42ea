"""The features of processors as `runtime/include/dso_cpu.h` finds them: names, words and bits."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from ..files.shipped import headers

if TYPE_CHECKING:
    from .table import Level

_HEADER = headers() / "dso_cpu.h"
_WORD_BITS = {"x86_64": 32, "aarch64": 64}
# x86-64: features from this one on need registers that the system saves: bits of word 6, XCR0.
_REGISTERS = (("avx", 0x6), ("avx512f", 0xE6))
_XCR0 = 6


@cache
def feature_bits(machine: str) -> dict[str, tuple[int, int]]:
    """Return the word and the bit of each feature of a machine, in the order of the header."""
    text = _HEADER.read_text(encoding="utf-8")
    part = text.partition(f"defined(__{machine}__)")[2].partition("#e")[0]
    rows = re.findall(r"^ +X\((\w+), (\d+), (\d+)\)", part, re.MULTILINE)
    return {name: (int(word), int(bit)) for name, word, bit in rows}


def needed_bits(level: Level) -> int:
    """Return the bits of all words that a processor of a level has set, as one number."""
    known, width = feature_bits(level.machine), _WORD_BITS[level.machine]
    bits = 0
    for name in level.features:
        word, bit = known[name]
        bits |= 1 << width * word + bit
    names = [*known]
    for first, registers in _REGISTERS if level.machine == "x86_64" else ():
        if any(names.index(name) >= names.index(first) for name in level.features):
            bits |= registers << width * _XCR0
    return bits
