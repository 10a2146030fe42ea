"""The CPU levels of a library: what its host code was compiled for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.abi import CPU_LEVELS

from ..declare.facts import MAX_NBYTES
from ..levels.record import parse_record
from .report import CpuReport

if TYPE_CHECKING:
    from ..elf.image import Image
    from ..elf.symbol_table import SymbolTable


def read_cpu_levels(image: Image, symbols: SymbolTable) -> CpuReport | None:
    """Return the CPU levels; those of the first model, if models were linked statically."""
    found = symbols.find(CPU_LEVELS) or next(iter(symbols.ending_with(CPU_LEVELS)), None)
    if found is None:
        return None
    with image.reading():
        text = bytes(image.data_of(found)[:MAX_NBYTES]).rstrip(b"\0").decode("utf-8", "replace")
        try:
            record = parse_record(text)
        except ValueError as error:
            raise image.error(f"{CPU_LEVELS}: {error}") from None
        needs = tuple(" ".join(record.features.get(level, ())) for level in record.levels)
        return CpuReport(record.levels, needs, record.lowest)
    return None
