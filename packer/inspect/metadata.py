"""The metadata of a library: as a report has it, and as text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from runtime.abi import LIBRARY_METADATA
from runtime.serial.library_metadata import KNOWN, parse_metadata

if TYPE_CHECKING:
    from ..elf.image import Image
    from ..elf.symbol_table import SymbolTable


def read_metadata(image: Image, symbols: SymbolTable) -> dict[str, Any]:
    """Read the metadata of a library; empty without.

    If it contains one statically linked model, that model's. A problem is appended to the image's.
    """
    symbol = symbols.find(LIBRARY_METADATA)
    if symbol is None:
        models = list(islice(symbols.ending_with(LIBRARY_METADATA), 2))
        symbol = models[0] if len(models) == 1 else None
    if symbol is not None:
        with image.reading():
            return parse_metadata(image.data_of(symbol), path=image.path)
    return {}


def metadata_rows(metadata: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each row: text as it is, other values as JSON.

    Version and license are first.
    """
    names = [name for name in KNOWN if name in metadata]
    for name in [*names, *(name for name in metadata if name not in KNOWN)]:
        value = metadata[name]
        is_text = isinstance(value, str)
        yield name, value if is_text else json.dumps(value, ensure_ascii=False)
