"""Structs of ctypes in the registers that pass a struct, a union or a complex number.

ctypes refuses unions and bit-fields by value. System V passes each eight bytes of at most 16 in a
register for floats, if all of it is floats, else in one for integers; AAPCS64 up to four floats of
one type in registers for floats, others as integers. Larger ones are copied to memory.
"""

from __future__ import annotations

import ctypes
import os

from .layout import C_NAMES, COMPLEX
from .record import number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .record import Types

_MACHINES = ("x86_64", "aarch64")
_FLOATS = {"f32": ctypes.c_float, "f64": ctypes.c_double}
_INTEGERS = {8: ctypes.c_uint64, 4: ctypes.c_uint32, 2: ctypes.c_uint16, 1: ctypes.c_uint8}
_OF_WIDTH = {4: ctypes.c_float, 8: ctypes.c_double}
_LARGEST = 16  # bytes in registers
_MOST = 4  # floats of one type in registers of AArch64


def substitute(types: Types, code: str) -> Any:
    """Return the class of ctypes for the code of a struct or a complex number."""
    if code not in types.substitutes:
        leaves = [*_leaves(types, code, 0)]
        size = number(code).size if code in COMPLEX else types.sizes[code[1:-1]]
        machine = os.uname().machine
        is_odd = any(at % of or leaf == "longdouble" for at, leaf, of in leaves)
        is_odd |= types.type(code).alignment > 8
        # Eight bytes of padding have no register.
        is_odd |= size <= _LARGEST and len({at // 8 for at, *_ in leaves}) < -(-size // 8)
        if machine not in _MACHINES or is_odd:
            text = "expected a struct of numbers and pointers that are aligned"
            raise TypeError(f"{code} by value: {text}, on {' or '.join(_MACHINES)}; call it in C")
        fields = [(f"f{i}", kind) for i, kind in enumerate(_fields(leaves, size, machine))]
        members: dict[str, Any] = {"_layout_": "ms", "_pack_": 1, "_fields_": fields}
        types.substitutes[code] = type(code, (ctypes.Structure,), members)
    return types.substitutes[code]


def _leaves(types: Types, code: str, at: int) -> Iterator[tuple[int, str, int]]:
    """Yield the offset, code and alignment of each number and pointer."""
    base, *extents = code.replace("]", "").split("[")
    item = types.type(base)
    for index in range(_product(extents)):
        start = at + index * item.size
        if base in COMPLEX:
            part = "f32" if base == "c64" else "f64"
            yield from ((start + i * item.size // 2, part, item.size // 2) for i in (0, 1))
        elif base[0] == "{":
            for _, inner, offset, *_ in types.members[base[1:-1]]:
                yield from _leaves(types, inner, start + offset)
        else:
            yield start, base, number(base).size if base in C_NAMES else 8


def _product(extents: list[str]) -> int:
    count = 1
    for extent in extents:
        count *= int(extent)
    return count


def _fields(leaves: list[tuple[int, str, int]], size: int, machine: str) -> Iterator[Any]:
    kinds = {leaf for _, leaf, _ in leaves}
    kind = kinds.pop() if len(kinds) == 1 else ""
    if kind in _FLOATS and size <= _MOST * ctypes.sizeof(_FLOATS[kind]):
        yield from [_FLOATS[kind]] * (size // ctypes.sizeof(_FLOATS[kind]))
    elif size > _LARGEST:
        yield ctypes.c_uint8 * size
    else:
        for start in range(0, size, 8):
            nbytes = min(8, size - start)
            here = [leaf for at, leaf, _ in leaves if start <= at < start + 8]
            if machine == "x86_64" and all(leaf in _FLOATS for leaf in here):
                yield _OF_WIDTH[nbytes]
            else:
                yield from (word for width, word in _INTEGERS.items() if nbytes & width)
