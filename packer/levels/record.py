"""The text of __packer_cpu_levels: what the code of a library was compiled for.

    packer-cpu 1
    levels x86-64-v2 x86-64-v3
    features x86-64-v2 cx16 lahf popcnt ...
    features x86-64-v3 cx16 lahf popcnt ... avx avx2 ...
    lowest pool.cc: it has thread-local variables

docs/format.md, CPU levels. The native core reads it before it opens a library.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .table import Level

FIRST_LINE = "packer-cpu 1"


class CpuRecord(NamedTuple):
    """The contents of a record."""

    # The names of the levels, lowest first. If there is one, all code is of this level.
    levels: tuple[str, ...]
    features: dict[str, tuple[str, ...]]  # what the code of each level needs
    lowest: tuple[str, ...]  # the sources that are of the lowest level only, each with the reason


def dump_record(levels: Sequence[Level], lowest: Iterable[str]) -> str:
    """Write a record, without the NUL."""
    lines = [FIRST_LINE, f"levels {' '.join(level.name for level in levels)}"]
    lines += [" ".join(("features", level.name, *level.features)) for level in levels]
    lines += [f"lowest {' '.join(text.split())}" for text in lowest]
    return "\n".join([*lines, ""])


def parse_record(text: str) -> CpuRecord:
    """Read a record.

    Raises ValueError if the first line is another one.
    """
    first, *lines = text.split("\n")
    if first != FIRST_LINE:
        raise ValueError(f"first line {first[:40]!r}, expected {FIRST_LINE!r}")
    rows = [line.partition(" ")[::2] for line in lines]
    words = [value.split() for key, value in rows if key == "features" and value]
    levels = next((tuple(value.split()) for key, value in rows if key == "levels"), ())
    features = {row[0]: tuple(row[1:]) for row in words}
    return CpuRecord(levels, features, tuple(value for key, value in rows if key == "lowest"))
