"""Numbers as the bytes of C, also the ones that the struct module does not know."""

from __future__ import annotations

import struct
import sys

from ..error import shown
from .layout import COMPLEX, FORMATS, Layouts, Refused, size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def halves(data: bytes) -> bytes:
    """Extend a bfloat16 to a float32."""
    return b"\0\0" + data if sys.byteorder == "little" else data + b"\0\0"


def number_bytes(code: str, value: Any, where: str) -> bytes:
    """Return the bytes of a number."""
    data = bytearray(size_of(Layouts(), code))
    store_number(data, 0, code, value, where)
    return bytes(data)


def store_number(data: bytearray, at: int, code: str, value: Any, where: str) -> None:
    """Store a number in `data`; refuse a value that its type cannot have."""
    try:
        if code == "bf16":
            bits = struct.unpack("=I", struct.pack("=f", value))[0]
            rounded = bits if value != value else bits + 0x7FFF + (bits >> 16 & 1)
            struct.pack_into("=H", data, at, rounded >> 16 & 0xFFFF)
        elif code in COMPLEX:
            number = complex(value)
            struct.pack_into("=" + COMPLEX[code], data, at, number.real, number.imag)
        elif code == "bool" and value not in (0, 1):
            raise ValueError(f"expected a bool, found {shown(value)}")
        else:
            struct.pack_into("=" + FORMATS[code], data, at, value)
    except (struct.error, OverflowError, TypeError, ValueError):
        text = f"field {where!r}: expected a value of type {code}, found {shown(value)}"
        is_number = isinstance(value, int | float | complex)
        raise Refused(OverflowError if is_number else TypeError, text) from None
