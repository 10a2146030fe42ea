"""The CPU levels of a library: what its host code was compiled for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.abi import CPU_LEVELS
from runtime.error import LibraryLoadError

from ..declare.facts import MAX_NBYTES
from ..levels.record import parse_record
from .report import CpuReport

if TYPE_CHECKING:
    from runtime._core import ElfFile

    from ..elf.image import Image
    from ..elf.symbol_table import SymbolTable


def read_cpu_levels(
    image: Image, symbols: SymbolTable, checked: ElfFile | None
) -> CpuReport | None:
    """Return the CPU levels; of the first model, if models were linked statically.

    `checked` is the library after the static check of a load, if it is for this machine.
    """
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
        refusal = _refusal(checked) if checked is not None else None
        if refusal is not None:
            image.problems.append(f"a load would refuse it: {refusal}")
        return CpuReport(record.levels, needs, record.lowest, refusal)
    return None


def _refusal(checked: ElfFile) -> str | None:
    try:
        checked.check_cpu()
    except LibraryLoadError as error:
        return error.message.removeprefix(f"{error.path}: ")
    return None
