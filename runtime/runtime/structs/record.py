"""The types of a library's structs: the text of ``__packer_structs`` (docs/format.md)."""

from __future__ import annotations

import re
import struct
import sys
from math import prod

from .._core import CType, Handle
from ..abi import STRUCTS
from .layout import C_NAMES, FORMATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FIRST_LINE = "packer-structs 1"
_NO_LAYOUT = ("other ", "alias ", "opaque ")
_MOST_BYTES = 1 << 26
_LINE = re.compile(r"(struct|union) ([^ ]+) (\d{1,15}) (\d{1,15})((?: [^ ]+)+)", re.ASCII)
_MEMBER = re.compile(
    r"([^:]+):([^@\[]{0,99}@?[^@\[]{1,999}(?:\[\d{1,13}\])*)@(\d{1,15})(?:\+(\d{1,3}):(\d{1,3}))?",
    re.ASCII,
)
_CONVERTED = {"f16": 2, "bf16": 2, "c64": 8, "c128": 16, "i128": 16, "u128": 16}
_BUFFERS = {"f16": b"e", "c64": b"Zf", "c128": b"Zd", "longdouble": b"g"}
OWN_NAMES = dict.fromkeys(dir(Handle))


def types_of(library: Any) -> Types:
    """Return the types of a library's structs and of numbers, by the kind of a handle."""
    data = library.data(STRUCTS)
    return Types([] if data is None else _lines(bytes(data)))


def members_of(data: bytes) -> dict[str, list[tuple[str, str]]]:
    """Return the members of each struct of a record, as names and codes."""
    found = [_parsed(line) for line in _lines(data) if not line.startswith(_NO_LAYOUT)]
    return {name: [(m[0], m[1]) for m in members] for name, _, _, members in found}


def _lines(data: bytes) -> list[str]:
    """Return the lines of a record without the first."""
    text = data.partition(b"\0")[0].decode()
    if not text.startswith(f"{_FIRST_LINE}\n") or len(text) > _MOST_BYTES:
        raise ValueError(f"{STRUCTS}: expected {_FIRST_LINE!r}, found {text[:40]!r}; export again")
    return text.splitlines()[1:]


class Types(dict[str, CType]):
    """The types of one record by name, and types of other codes, each made once."""

    def __init__(self, lines: list[str]) -> None:
        super().__init__({name: number(code) for code, name in C_NAMES.items()})
        found = [_parsed(line) for line in lines if not line.startswith(_NO_LAYOUT)]
        self.sizes = {name: size for name, size, _, _ in found}
        self.members = {name: members for name, _, _, members in found}
        self.formats: dict[str, str] = {}
        self.others: dict[str, CType] = {}
        self.kept: dict[str, Any] = {}  # what pointers that are variables refer to, by name
        self.prototypes: dict[str, Any] = {}  # of ctypes, by the code of a function
        self.substitutes: dict[str, Any] = {}  # likewise, by the code of a struct
        for name, size, alignment, _ in found:
            format_ = self.format(name).encode()
            self[name] = CType(name, f"{{{name}}}", "{", size, format=format_, alignment=alignment)
        for name, _, _, members in found:
            self[name].set_members(self.places(members), OWN_NAMES)
        for line in lines:
            key, name, *own = line.split(" ")
            if key == "opaque":
                self[name] = CType(name, f"@{name}", "O", 0)
            elif key == "alias" and own and own[0] in self:
                pointed = self[own[0]].code
                pointer = pointed if pointed[0] == "@" else f"*{pointed}"
                self.setdefault(name, self.type(pointer) if own[1:] else self[own[0]])

    def places(self, members: list[Any]) -> dict[str, Any]:
        """Return the type and place of each member."""
        return {sys.intern(n): (self.type(code), *place) for n, code, *place in members}

    def format(self, name: str) -> str:
        """Describe a struct for NumPy: the members that do not overlap, pointers as integers."""
        if name not in self.formats:
            self.formats[name] = ""  # while it is open
            parts, end = [], 0
            for member, code, offset, _, width in self.members[name]:
                text, size = self.item_format(code)
                if width == 0 and text and offset >= end:
                    parts.append(f"{offset - end}x" if offset > end else "")
                    parts.append(f"{text}:{member}:")
                    end = offset + size
            whole = self.sizes[name]
            parts.append(f"{whole - end}x" if whole > end else "")
            self.formats[name] = f"T{{^{''.join(parts)}}}" if end else f"{whole}s"
        return self.formats[name]

    def item_format(self, code: str) -> tuple[str, int]:
        """Return the format of a member and its size; empty if NumPy has none."""
        base, *extents = code.replace("]", "").split("[")
        count = prod(map(int, extents))
        shape = f"({','.join(extents)})" if extents else ""
        if base == "char" and len(extents) == 1 and count:
            return f"{count}s", count
        if base[:1] == "{":
            name = base[1:-1]
            text, size = (self.format(name), self.sizes[name]) if name in self.sizes else ("", 0)
        elif base in C_NAMES:
            item = number(base)
            text, size = (item.format or b"").decode(), item.size
        else:
            text, size = "Q", 8
        return (f"{shape}{text}" if text and count else ""), size * count

    def type(self, code: str) -> CType:
        """Return the type of a code."""
        if code not in self.others:
            self.others[code] = self.make(code)
        return self.others[code]

    def make(self, code: str) -> CType:
        if code[-1:] == "]":
            base, _, inner = code.partition("[")
            count, _, rest = inner.partition("]")
            item = self.type(base + rest)
            return array_of(item, int(count))
        if code[:1] == "{":
            return self.get(code[1:-1]) or opaque(code[1:-1])
        if code in ("str", "*char"):
            return CType(
                "char *", code, "s", 8, number("char"), is_const=code == "str", format=b"Q"
            )
        if code == "strs":
            return pointer_to_type(self.type("*char"), code)
        if code[:3] == "fn(":
            return CType(code, code, "F", 0)
        if code[:1] == "@" or code == "fn":
            return pointer_to_type(opaque(code[1:] if code[0] == "@" else None), code)
        if code[:1] in ("*", "&"):
            target = opaque(None) if code[1:] == "void" else self.type(code[1:])
            return pointer_to_type(target, code, code[0] == "&")
        return number(code)


def _parsed(line: str) -> tuple[str, int, int, list[Any]]:
    match = _LINE.fullmatch(line)
    members = [_MEMBER.fullmatch(text) for text in match[5].split()] if match else [None]
    if match is None or None in members:
        text = f"{STRUCTS}: expected 'struct name size alignment member:code@offset ...', found"
        raise ValueError(f"{text} {line[:80]!r}; export again")
    made = [(m[1], m[2], int(m[3]), int(m[4] or 0), int(m[5] or 0)) for m in members if m]
    return match[2], int(match[3]), min(int(match[4]), 1 << 30), made


def number(code: str) -> CType:
    """Return the type of a number."""
    name, how = C_NAMES.get(code), FORMATS.get(code, "")
    if name is None:
        return opaque(None, code)
    if code == "char":
        how = "b"
    if code in _CONVERTED:
        return CType(name, code, "x", _CONVERTED[code], format=_BUFFERS.get(code))
    if code == "longdouble":
        return CType(name, code, "g", 16, format=b"g")
    return CType(name, code, how, struct.calcsize(f"={how}"), format=how.encode())


def array_of(item: CType, count: int) -> CType:
    """Return the type of an array."""
    size = count * item.size
    base, bracket, extents = item.code.partition("[")
    code = f"{base}[{count}]{bracket}{extents}"
    if size >= _MOST_BYTES**2:
        raise ValueError(f"array of {count} items: expected less than {_MOST_BYTES**2} bytes")
    how, format_ = ("c", f"{count}s".encode()) if item.code == "char" else ("[", None)
    return CType(item.name, code, how, size, item, count, format=format_, alignment=item.alignment)


def pointer_to_type(target: CType, code: str, is_const: bool = False) -> CType:
    """Return the type of a pointer."""
    name = f"{target.name} *" if target.name else None
    return CType(name, code, "*", 8, target, is_const=is_const, format=b"Q")


def opaque(name: str | None, code: str = "void") -> CType:
    """Return a type of which only the address is known."""
    return CType(name, name or code, "O", 0)
