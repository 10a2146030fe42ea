"""The C file unicode.c: what Numba knows of each character, read from the Numba in use.

It depends on that release alone, since Numba has a separate table. The characters have a few
hundred different records; 128 characters in a row often have the same as another 128.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

_CHARACTERS, _BLOCK = 0x110000, 128
# Unicode has given characters to these planes of 65,536; the others are unused or private.
_PLANES = (0, 1, 2, 3, 14)
_LAYOUT = struct.Struct("=iiiBBH")
_EXTENDED = 0x4000  # the flag of a record whose numbers are places in the second table


class _Record(NamedTuple):
    upper: int
    lower: int
    title: int
    decimal: int
    digit: int
    flags: int


@cache
def unicode_source() -> str:
    """Return the file."""
    found: dict[bytes, int] = {}
    blocks: dict[tuple[int, ...], int] = {}
    places: list[int] = []
    read = _reader()
    for start in range(0, _CHARACTERS, _BLOCK):
        if start >> 16 not in _PLANES and start & 0xFFFF:
            places.append(places[-1])
            continue
        block = tuple(
            found.setdefault(read(code), len(found)) for code in range(start, start + _BLOCK)
        )
        places.append(blocks.setdefault(block, len(blocks)))
    numbers = [number for block in blocks for number in block]
    records = [_Record(*_LAYOUT.unpack(stored)) for stored in found]
    return "\n".join(
        (
            "/* Records of characters; made while packing. */",
            '#include "unicode.h"',
            _array("uint16_t", "nb_unicode_blocks", places),
            _array("uint16_t", "nb_unicode_numbers", numbers),
            _array("struct nb_unicode_record", "nb_unicode_records", map(_braced, records)),
            _array("uint32_t", "nb_unicode_extended", _read_extended(records)),
            '#include "unicode_lookup.h"',
            "",
        )
    )


def _reader() -> Callable[[int], bytes]:
    from numba import _helperlib

    stored = ctypes.create_string_buffer(_LAYOUT.size)
    places = [ctypes.addressof(stored) + offset for offset in (0, 4, 8, 12, 13, 14)]
    read = ctypes.PYFUNCTYPE(None, ctypes.c_uint32, *[ctypes.c_void_p] * len(places))(
        _helperlib.c_helpers["gettyperecord"]
    )

    def record(code: int) -> bytes:
        read(code, *places)
        return stored.raw

    return record


def _read_extended(records: list[_Record]) -> list[int]:
    """Return the second table, as far as records name places in it."""
    from numba import _helperlib

    kind = ctypes.PYFUNCTYPE(ctypes.c_uint32, ctypes.c_int)
    read = kind(_helperlib.c_helpers["get_PyUnicode_ExtendedCase"])
    # In a number: the place, the length from bit 24, the length when folded from bit 20.
    ends = [
        (number & 0xFFFF) + (number >> 24) + (number >> 20 & 7)
        for record in records
        if record.flags & _EXTENDED
        for number in record[:3]
    ]
    return [read(place) for place in range(max(ends))]


def _braced(record: _Record) -> str:
    return f"{{{', '.join(map(str, record))}}}"


def _array(kind: str, name: str, values: Any) -> str:
    """Return an array of constants."""
    return f"static const {kind} {name}[] = {{{', '.join(map(str, values))}}};"
