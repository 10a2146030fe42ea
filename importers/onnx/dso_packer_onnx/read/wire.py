"""Protobuf's wire format of a model, walked before protobuf parses it.

A parser makes 150 bytes of an empty message of two, and says nothing about where a file is cut.
So this counts messages and their nesting first, without a copy.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from .words import refusal

MOST_BYTES = (1 << 31) - 1  # of one protobuf message
MOST_MESSAGES = 1_000_000
MOST_NESTING = 90  # protobuf refuses more than 100
MOST_PACKED = 1 << 26  # bytes of integers that take 8 bytes each in memory
_PACKED = {"int32_data", "int64_data", "uint64_data"}
_VARINT, _FIXED64, BYTES, _FIXED32 = 0, 1, 2, 5

Fields = Mapping[int, Any]  # the descriptor of each field that is a message, or the name of packed


def check_wire(data: memoryview, descriptor: Any, source: str) -> None:
    """Check that bytes can be a message of protobuf, within limits.

    Parameters
    ----------
    data : memoryview
        The bytes of one message.
    descriptor : google.protobuf.descriptor.Descriptor
        The type of the message.
    source : str
        What the bytes are, for messages: a path.

    Raises
    ------
    ExportError
        If the bytes are cut or malformed, or if a limit is exceeded.
    """
    if len(data) > MOST_BYTES:
        raise refusal(
            source,
            f"a protobuf message, expected at most {MOST_BYTES:,} bytes, found {len(data):,}; store"
            " the weights beside it: onnx.save(model, path, save_as_external_data=True)",
        )
    Walk(data, source).run(descriptor)


class Walk:
    """One walk: the bytes, the position, and what was counted so far."""

    def __init__(self, data: memoryview, source: str) -> None:
        self.data, self.source = data, source
        self.packed = 0

    def run(self, descriptor: Any) -> None:
        data, position, end = self.data, 0, len(self.data)
        fields, count = _fields(descriptor), 0
        outer: list[tuple[int, Fields]] = []
        while True:
            while position >= end:
                if not outer:
                    return
                end, fields = outer.pop()
            start = position
            tag = data[position]
            position += 1
            if tag > 127:
                tag, position = self.varint(start, end)
            if tag & 7 != BYTES:
                position = self.skip(tag & 7, start, position, end)
                continue
            length = data[position] if position < end else 128
            position += 1
            if length > 127:
                length, position = self.varint(position - 1, end)
            if position + length > end:
                self.cut(start, length, end - position)
            inner = fields.get(tag >> 3)
            if inner is None:
                position += length
            elif isinstance(inner, str):
                self.count_packed(inner, start, length)
                position += length
            else:
                count += 1
                if count > MOST_MESSAGES:
                    self.refuse(start, f"more than {MOST_MESSAGES:,} messages")
                if len(outer) >= MOST_NESTING:
                    self.refuse(start, f"messages nested deeper than {MOST_NESTING}")
                if length:
                    outer.append((end, fields))
                    fields, end = _fields(inner), position + length

    def varint(self, position: int, end: int) -> tuple[int, int]:
        """Return an integer and the position after it."""
        data, value, shift, start = self.data, 0, 0, position
        while position < end and shift < 70:
            byte = data[position]
            position += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value, position
            shift += 7
        return self.cut(start, 1, 0) if position == end else self.malformed(start)

    def skip(self, wire: int, start: int, position: int, end: int) -> int:
        """Return the position after a number and any further numbers of the same field."""
        if wire == _VARINT:
            position = self.varint(position, end)[1]
        elif wire in (_FIXED32, _FIXED64):
            position += 4 if wire == _FIXED32 else 8
        else:
            self.malformed(start)
        if position > end:
            self.cut(start, position - start, end - start)
        if position < end and self.data[position] == self.data[start] < 128:
            found = _run(self.data[start], wire).match(self.data, position, end)
            position = found.end() if found else position
        return position

    def count_packed(self, name: str, start: int, length: int) -> None:
        self.packed += length
        if self.packed > MOST_PACKED:
            self.refuse(start, f"more than {MOST_PACKED:,} bytes of {name}; store it as raw_data")

    def cut(self, start: int, expected: int, found: int) -> NoReturn:
        self.refuse(
            start, f"a field, expected {expected:,} bytes, found {found:,}; it is cut or no model"
        )

    def malformed(self, start: int) -> NoReturn:
        self.refuse(start, "this is not a field of protobuf; the file is damaged or not a model")

    def refuse(self, start: int, text: str) -> NoReturn:
        raise refusal(self.source, f"byte {start:#x}: {text}")


@functools.cache
def _fields(descriptor: Any) -> Fields:
    """Return the fields that must be walked or counted, by number."""
    found: dict[int, Any] = {}
    for field in descriptor.fields:
        if field.message_type is not None:
            found[field.number] = field.message_type
        elif field.name in _PACKED:
            found[field.number] = field.name
    return found


@functools.cache
def _run(tag: int, wire: int) -> re.Pattern[bytes]:
    """Match fields of one number after each other: unpacked floats and integers."""
    number = {_VARINT: rb"[\x80-\xff]{0,9}+[\x00-\x7f]", _FIXED32: b".{4}", _FIXED64: b".{8}"}
    # Possessive: without it, the regular expression engine remembers every repetition.
    return re.compile(b"(?:%b%b)++" % (re.escape(bytes([tag])), number[wire]), re.DOTALL)
