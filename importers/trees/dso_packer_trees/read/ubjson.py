"""Universal Binary JSON, draft 12, as XGBoost writes it.

A typed array ``[$<type>#<count>`` becomes a NumPy array. Numbers are big-endian.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from packer import ExportError

_NUMBERS = dict(
    zip(b"iUIlLdD", (">i1", ">u1", ">i2", ">i4", ">i8", ">f4", ">f8"), strict=True),
)
_CONSTANTS = {b"Z": None, b"T": True, b"F": False}
_MOST_DEPTH = 32


def read_ubjson(data: bytes, where: str) -> Any:
    """Return the value of a file.

    Raises ExportError if it is cut or damaged; names the offset.
    """
    reader = _Reader(data, where)
    value = reader.value(reader.take(1))
    if reader.offset != len(data):
        raise reader.error("expected the end of the file")
    return value


class _Reader:
    def __init__(self, data: bytes, where: str) -> None:
        self._data, self._where = data, where
        self.offset = 0
        self._depth = 0

    def error(self, text: str) -> ExportError:
        return ExportError(f"{self._where}: at {self.offset:#x}: {text}; save the model again")

    def take(self, count: int) -> bytes:
        if not 0 <= count <= len(self._data) - self.offset:
            raise self.error(f"the file ends, expected {count} bytes more")
        self.offset += count
        return self._data[self.offset - count : self.offset]

    def value(self, marker: bytes) -> Any:
        if marker[0] in _NUMBERS:
            dtype = np.dtype(_NUMBERS[marker[0]])
            return np.frombuffer(self.take(dtype.itemsize), dtype)[0].item()
        if marker in _CONSTANTS:
            return _CONSTANTS[marker]
        if marker in (b"S", b"H"):
            return self._text()
        if marker == b"C":
            return self.take(1).decode("latin-1")
        if marker not in (b"[", b"{"):
            raise self.error(f"marker {marker!r}, expected one of UBJSON")
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise self.error(f"over {_MOST_DEPTH} levels")
        made = self._array() if marker == b"[" else self._object()
        self._depth -= 1
        return made

    def _count(self) -> int:
        number = self.value(self.take(1))
        if type(number) is not int or number < 0:
            raise self.error(f"a count, expected an integer, found {number!r}")
        return number

    def _text(self) -> str:
        return self.take(self._count()).decode("utf-8", "replace")

    def _array(self) -> Any:
        marker = self.take(1)
        if marker == b"$":
            kind, hash_ = self.take(1), self.take(1)
            if kind[0] not in _NUMBERS or hash_ != b"#":
                raise self.error("a typed array, expected numbers and their count")
            dtype = np.dtype(_NUMBERS[kind[0]])
            return np.frombuffer(self.take(self._count() * dtype.itemsize), dtype)
        if marker == b"#":
            count = self._count()
            if count > len(self._data) - self.offset:
                raise self.error(f"an array of {count} elements, expected fewer")
            return [self.value(self.take(1)) for _ in range(count)]
        made = []
        while marker != b"]":
            made.append(self.value(marker))
            marker = self.take(1)
        return made

    def _object(self) -> dict[str, Any]:
        made = {}
        while (marker := self.take(1)) != b"}":
            self.offset -= len(marker)
            key = self._text()
            made[key] = self.value(self.take(1))
        return made
