"""Assembles bytecode of relax's virtual machine, and writes it as TVM does.

A small language: tests of the machine import all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from struct import pack, unpack_from
from typing import Any

MAGIC, MAGIC_V1, VERSION = 0xD225DE2F4214151E, 0xD225DE2F4214151D, "0.14"
VOID, CONTEXT = 1 << 54, (1 << 54) + 1
INT, FLOAT, DATA_TYPE, STR, SHAPE, TENSOR = 1, 3, 5, 65, 69, 70

FLOAT32, INT64, UINT8 = (2, 32, 1), (0, 64, 1), (1, 8, 1)

# The tags of constants in version 1: as today, in TVM 0.21, and before.
TAGS_0_22 = {}
TAGS_0_21 = {SHAPE: 71, TENSOR: 72}
TAGS_0_19 = {TENSOR: 0, DATA_TYPE: 1, SHAPE: 2, STR: 3, INT: 4, FLOAT: 5}


def reg(number: int) -> int:
    """A register as an argument."""
    return number


def imm(number: int) -> int:
    """An immediate."""
    return _argument(1, number)


def const(index: int) -> int:
    """A constant."""
    return _argument(2, index)


def func(index: int) -> int:
    """A function as a value."""
    return _argument(3, index)


def _argument(kind: int, value: int) -> int:
    return kind << 56 | value & (1 << 56) - 1


def call(dst: int, function: int, *args: int) -> list[int]:
    """``dst = function(args)``; `function` is its index in the table."""
    return [1, dst, function, len(args), *args]


def ret(register: int) -> list[int]:
    """Return a register."""
    return [2, register]


def goto(offset: int) -> list[int]:
    """Go on `offset` instructions further."""
    return [3, offset]


def branch(register: int, false_offset: int) -> list[int]:
    """Go on with the next one, or `false_offset` further where the register is zero."""
    return [4, register, false_offset]


@dataclass
class Code:
    """A function of bytecode, or with no code one that is called by name."""

    name: str
    params: Sequence[str] = ()
    code: Sequence[list[int]] = ()
    registers: int = 0
    kind: int = 1


def packed(name: str) -> Code:
    """A function that is called by name."""
    return Code(name, kind=0)


@dataclass
class Program:
    """The contents of a payload; fields can be poked before it is written."""

    functions: list[Code]
    constants: list[tuple[int, Any]] = field(default_factory=list)
    scopes: list[tuple[int, str]] = field(default_factory=list)
    magic: int = MAGIC
    version: str = VERSION
    tags: dict[int, int] = field(default_factory=dict)
    is_framed: bool = False
    rows: list[list[int]] = field(init=False)
    offsets: list[int] = field(init=False)
    words: list[int] = field(init=False)

    def __post_init__(self) -> None:
        """Lay the instructions out, one function after the other."""
        self.rows, self.offsets, self.words = [], [], []
        for function in self.functions:
            start = len(self.offsets)
            for instruction in function.code:
                self.offsets.append(len(self.words))
                self.words += instruction
            row = [start, len(self.offsets), len(function.params), function.registers]
            self.rows.append(row if function.kind else [0, 0, -2, 0])

    def payload(self) -> bytes:
        """The bytes, as TVM writes them."""
        parts = [pack("<Q", self.magic), _string(self.version), pack("<Q", len(self.functions))]
        for function, row in zip(self.functions, self.rows, strict=True):
            parts += [pack("<i", function.kind), _string(function.name), pack("<4q", *row)]
            parts += [pack("<Q", len(function.params)), *map(_string, function.params)]
        if self.magic != MAGIC_V1:
            parts.append(pack("<Q", len(self.scopes)))
            parts += [pack("<q", index) + _string(scope) for index, scope in self.scopes]
        parts.append(pack("<Q", len(self.constants)))
        for index, value in self.constants:
            parts.append(pack("<i", self.tags.get(index, index)) + _value(index, value))
        parts += [_words(self.offsets), _words(self.words)]
        made = b"".join(parts)
        return pack("<Q", len(made)) + made if self.is_framed else made

    def version_one(self, tags: dict[int, int], *, is_framed: bool = False) -> Program:
        """The same program as TVM wrote it up to 0.22."""
        return replace(self, magic=MAGIC_V1, tags=tags, is_framed=is_framed)


def as_version_one(payload: bytes) -> bytes:
    """Rewrite a payload of version 2 without memory scopes; TVM 0.27 reads both."""
    position = 8 + 8 + len(VERSION)
    (count,) = unpack_from("<Q", payload, position)
    position += 8
    for _ in range(count):
        position = _after_string(payload, position + 4) + 4 * 8
        (params,) = unpack_from("<Q", payload, position)
        position += 8
        for _ in range(params):
            position = _after_string(payload, position)
    assert payload[position : position + 8] == bytes(8), "memory scopes"
    return pack("<Q", MAGIC_V1) + payload[8:position] + payload[position + 8 :]


def _after_string(payload: bytes, position: int) -> int:
    (nbytes,) = unpack_from("<Q", payload, position)
    return position + 8 + int(nbytes)


def _string(text: str) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return pack("<Q", len(data)) + data


def _words(numbers: Sequence[int]) -> bytes:
    return pack(f"<Q{len(numbers)}q", len(numbers), *numbers)


def _value(type_index: int, value: Any) -> bytes:
    if type_index == STR:
        return _string(value)
    if type_index == SHAPE:
        return _words(value)
    if type_index == DATA_TYPE:
        return pack("<BBH", *value)
    if type_index == TENSOR:
        return _ndarray(value)
    return pack("<d" if type_index == FLOAT else "<q", value)


def _ndarray(array: Any) -> bytes:
    code = {"i": 0, "u": 1, "f": 2, "b": 6}[array.dtype.kind]
    head = pack("<QQiii", 0xDD5E40F096B4A13F, 0, 1, 0, array.ndim)
    dtype = pack("<BBH", code, 8 * array.itemsize, 1)
    shape = pack(f"<{array.ndim}q", *array.shape)
    return head + dtype + shape + pack("<q", array.nbytes) + array.tobytes()


def doubling() -> Program:
    """``main(x)`` returns the output of ``twice(x, y, 4)``, for four floats."""
    code = [
        call(1, 1, CONTEXT, const(0), imm(0), const(1), const(2)),
        call(2, 2, reg(1), imm(0), const(3), const(4)),
        call(VOID, 3, reg(0), reg(2), imm(4)),
        ret(2),
    ]
    names = ["vm.builtin.alloc_storage", "vm.builtin.alloc_tensor", "twice"]
    constants = [
        *((SHAPE, [16]), (DATA_TYPE, UINT8), (STR, "global")),
        *((SHAPE, [4]), (DATA_TYPE, FLOAT32)),
    ]
    return Program([Code("main", ["x"], code, 3), *map(packed, names)], constants)


TWICE = "void(const float *x, float *y, int64_t n)"
TWICE_SOURCE = """
#include <stdint.h>
void twice(const float *x, float *y, int64_t n) { for (int64_t i = 0; i < n; i++) y[i] = 2 * x[i]; }
"""
