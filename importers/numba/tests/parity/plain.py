"""Values of calls without NumPy: made where NumPy is, and used where it is not.

    ("py", value)                                 None, bool, int, float, complex, str, bytes
    ("tuple", [value, ...])
    ("array", code, bits, shape, strides, offset, data, is_writable)
    ("again", index)                              the same object as an earlier argument

Strides and the offset of the first element count bytes; `data` is the memory of the array.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}


class NotPlainError(Exception):
    """A value that only Python has."""


def plain_of(value: Any) -> tuple[Any, ...]:
    """Describe a value of a process with NumPy."""
    import numpy as np

    if isinstance(value, np.ndarray) and type(value) is np.ndarray:
        return _array(np, value)
    if isinstance(value, np.generic):
        if value.dtype.kind not in _CODES:
            raise NotPlainError(str(type(value)))
        value = value.item()
    if isinstance(value, tuple):
        return ("tuple", [plain_of(item) for item in value])
    if value is None or type(value) in (bool, int, float, complex, str, bytes):
        return ("py", value)
    raise NotPlainError(str(type(value)))


def plain_arguments(values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Describe the arguments of a call."""
    first: dict[int, int] = {}
    made = []
    for index, value in enumerate(values):
        plain = plain_of(value)
        if plain[0] == "array" and first.setdefault(id(value), index) != index:
            plain = ("again", first[id(value)])
        made.append(plain)
    return made


def copies_of(values: Sequence[Any]) -> list[Any]:
    """Copy the arguments of a call as another process gets them: arrays keep their strides."""
    made: dict[int, Any] = {}
    for value in values:
        made.setdefault(id(value), _copy_of(value))
    return [made[id(value)] for value in values]


def _copy_of(value: Any) -> Any:
    import numpy as np

    if isinstance(value, tuple):
        items = map(_copy_of, value)
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, str):  # without the hash that CPython keeps in the object
        return value.encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass")
    if not isinstance(value, np.ndarray):
        return value
    *_, shape, strides, offset, data, is_writable = _array(np, value)
    memory = np.frombuffer(bytearray(data) or bytearray(16), np.uint8)
    made: Any = np.ndarray(shape, value.dtype, memory, offset, strides)
    made.flags.writeable = is_writable
    return made


def _array(np: Any, array: Any) -> tuple[Any, ...]:
    if array.dtype.kind not in _CODES or not array.dtype.isnative or not array.flags.aligned:
        raise NotPlainError(str(array.dtype))
    low, high = np.lib.array_utils.byte_bounds(array)
    data = ctypes.string_at(low, high - low) if array.size else b""
    offset = array.ctypes.data - low if array.size else 0
    code, bits = _CODES[array.dtype.kind], array.dtype.itemsize * 8
    strides = list(array.strides)
    return ("array", code, bits, list(array.shape), strides, offset, data, array.flags.writeable)


def items_of(plain: tuple[Any, ...]) -> Any:
    """Return what results are compared by: dtype, shape, and the bytes of each element."""
    if plain[0] == "tuple":
        return ("tuple", [items_of(item) for item in plain[1]])
    if plain[0] == "py":
        return _number(plain[1])
    _, code, bits, shape, strides, offset, data, _ = plain
    size = bits // 8
    places = [offset]
    for extent, stride in zip(shape, strides, strict=True):
        places = [place + i * stride for place in places for i in range(extent)]
    return ("array", code, bits, shape, b"".join(data[p : p + size] for p in places))


def _number(value: Any) -> Any:
    """A float by its bits; an int and a bool are the same number."""
    if isinstance(value, float):
        return ("number", struct.pack("<d", value))
    if isinstance(value, complex):
        return ("complex", struct.pack("<dd", value.real, value.imag))
    return ("py", int(value) if isinstance(value, bool) else value)
