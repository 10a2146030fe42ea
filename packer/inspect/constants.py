"""The constants and variables of a library, read from its record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.abi import CONSTANTS
from runtime.constants import ConstantsRecord, parse_constants

if TYPE_CHECKING:
    from ..elf.image import Image
    from ..elf.symbol_table import SymbolTable


def read_constants(image: Image, symbols: SymbolTable) -> ConstantsRecord:
    """Read the record; it is empty without one. A problem is appended to the image's."""
    symbol = symbols.find(CONSTANTS)
    if symbol is not None:
        with image.reading():
            return parse_constants(image.data_of(symbol), image.path)
    return ConstantsRecord()


def shown_values(record: ConstantsRecord) -> dict[str, int | float | str]:
    """Return the constants for a report, where bytes are text with escapes."""
    values = record.plain()
    return {
        name: value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
        for name, value in values.items()
    }
