"""The layouts of structs that a function's metadata lists, and why a value does not fit one."""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .._core import Function

# The struct module's format of each number. Complex numbers are two.
FORMATS = {
    "i8": "b", "i16": "h", "i32": "i", "i64": "q",
    "u8": "B", "u16": "H", "u32": "I", "u64": "Q",
    "bool": "?", "f16": "e", "f32": "f", "f64": "d", "char": "b",
}  # fmt: skip
COMPLEX = {"c64": "ff", "c128": "dd"}
# The C types of codes, as handles of such a value name them.
C_NAMES = {
    **{f"{sign}{n}": f"{name}{n}_t" for sign, name in (("i", "int"), ("u", "uint"))
       for n in (8, 16, 32, 64)},
    "char": "char", "bool": "bool", "f32": "float", "f64": "double", "f16": "_Float16",
    "bf16": "__bf16", "c64": "float _Complex", "c128": "double _Complex",
    "longdouble": "long double", "i128": "__int128", "u128": "unsigned __int128",
}  # fmt: skip


class Field(NamedTuple):
    """One field: its name, its code without extents, its extents, and its offset."""

    name: str
    code: str
    extents: tuple[int, ...]
    offset: int

    def __str__(self) -> str:
        extents = "".join(f"[{extent}]" for extent in self.extents)
        return f"{self.name}: {self.code}{extents} at {self.offset}"


class Layout(NamedTuple):
    """The layout of a struct."""

    name: str
    size: int
    fields: tuple[Field, ...]

    def __str__(self) -> str:
        return f"{', '.join(map(str, self.fields))}; {self.size} bytes"


class Layouts(dict[str, Layout]):
    """Layouts by the name of the struct."""

    def __missing__(self, name: str) -> Layout:
        text = f"struct {name!r}: expected its layout in the function's metadata, found none"
        raise LookupError(f"{text}; export the library again")


class Refused(Exception):  # noqa: N818 - it never leaves this file
    """A value does not fit; the text becomes the message of an argument error."""

    def __init__(self, kind: type[Exception], text: str) -> None:
        super().__init__(text)
        self.kind = kind


@lru_cache(maxsize=256)
def _parse(structs: tuple[tuple[str, str], ...]) -> Layouts:
    layouts = Layouts()
    for name, text in structs:
        size, _, *fields = text.split(" ")
        made = tuple(_field(layouts, name, int(size), field) for field in fields if field)
        layouts[name] = Layout(name, int(size), made)
    return layouts


def _is_extent(text: str) -> bool:
    digits = text[:-1]
    return text.endswith("]") and digits.isascii() and digits.isdecimal() and len(digits) < 19


def _field(layouts: Layouts, struct_name: str, size: int, text: str) -> Field:
    """Parse a field; refuse one that is not within the struct, or contains a later struct."""
    head, _, offset = text.rpartition("@")
    name, _, code = head.partition(":")
    base, *extents = code.split("[")
    if all(map(_is_extent, extents)):
        field = Field(name, base, tuple(int(extent[:-1]) for extent in extents), int(offset))
        if field.offset + size_of(layouts, field.code, field.extents) <= size:
            return field
    wrong = f"struct {struct_name!r}: expected fields within its {size} bytes, found {text!r}"
    raise ValueError(f"{wrong}; export the library again")


def layouts_of(function: Function) -> Layouts:
    """Return the layouts that a function's metadata lists, by name."""
    return _parse(tuple(function._declared[4]))


def struct_name(code: str) -> str:
    """Return the name in ``{point}``, ``*{point}`` or ``&{point}``."""
    return code.lstrip("*&").partition("[")[0].strip("{}")


def format_of(code: str) -> str:
    """Return the struct module's format of a code without extents; a pointer is an address."""
    return FORMATS.get(code) or COMPLEX.get(code) or "Q"


def size_of(layouts: Layouts, code: str, extents: tuple[int, ...] = ()) -> int:
    """Return the size of a field in bytes."""
    if code.startswith("{"):
        nbytes = layouts[struct_name(code)].size
    else:
        nbytes = 2 if code == "bf16" else struct.calcsize("=" + format_of(code))
    for extent in extents:
        nbytes *= extent
    return nbytes
