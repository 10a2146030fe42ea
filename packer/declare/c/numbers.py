"""Numbers and extents of C, and the error for a type that cannot be passed."""

from __future__ import annotations

import re

from runtime.error import shown

from ..declaration import SIGNED, UNSIGNED
from .scope import Scope, enum_values
from .tokens import TYPEOF
from .types import CType, Pointer, Tagged, render

# Words in any order, LP64 widths; "signed" and "int" are left out where another word is enough.
_NUMBERS = {
    "char": "char",
    "signed char": "i8",
    "short": "i16",
    "": "i32",
    "long": "i64",
    "long long": "i64",
    "unsigned char": "u8",
    "unsigned short": "u16",
    "unsigned": "u32",
    "unsigned long": "u64",
    "unsigned long long": "u64",
    "bool": "bool",
    "_Bool": "bool",
    "float": "f32",
    "double": "f64",
    "_Float32": "f32",
    "_Float64": "f64",
    "_Float32x": "f64",
    "long double": "longdouble",
    "_Float16": "f16",
    "__bf16": "bf16",
    "float _Complex": "c64",
    "double _Complex": "c128",
    "void": "void",
    "DLTensor": "tensor",
    "dso_status": "status",
}
_BY_WORDS = {tuple(sorted(text.split())): code for text, code in _NUMBERS.items()}
# A number that a conversion of the compiler passes, and the type to declare instead.
CONVERTED = {
    ("double", "long"): "double",
    ("_Float128",): "double",
    ("__float128",): "double",
    ("_Float64x",): "double",
    ("_Complex", "double", "long"): "double _Complex",
    ("__int128",): "int64_t",
    ("__int128", "unsigned"): "uint64_t",
}
_VA_LISTS = ("va_list", "__builtin_va_list", "__gnuc_va_list")
NUMBERS = {*SIGNED, *UNSIGNED, "bool", "f16", "bf16", "f32", "f64", "c64", "c128"}


class UnsupportedError(Exception):
    """A type that cannot be passed.

    `instead` is the type and name to declare instead; empty if none is possible. `is_converted` is
    True if only a call that the compiler converts has this type.
    """

    def __init__(self, what: str, instead: str = "", is_converted: bool = False) -> None:
        super().__init__(what)
        self.instead = instead
        self.is_converted = is_converted


def number_code(words: tuple[str, ...]) -> str | None:
    """Return the code of a type that one name or several keywords tell, or None."""
    found = sorted(words)
    if len(found) > 1:
        for word in ("int", "signed"):
            if word in found and (word == "int" or "char" not in found):
                found.remove(word)
    return _BY_WORDS.get(tuple(found) if found not in (["int"], ["signed"]) else ())


def unknown(text: str, name: str) -> UnsupportedError:
    """Make the error for a type that is not known."""
    if text.startswith(TYPEOF):
        return UnsupportedError(f"{text}, an expression that only the compiler reads")
    if text in _VA_LISTS:
        return UnsupportedError(f"{text}, arguments that only C code can list", f"void *{name}")
    return UnsupportedError(f"unknown type {text!r}", f"int {name}".strip())


def enum_code(type_: Tagged, scope: Scope) -> str:
    """Return the code of an enum: the compiler takes unsigned int if no value is negative."""
    values = enum_values(type_, scope.constant).values()
    low, high = min(values, default=0), max(values, default=0)
    needed = max((-low - 1).bit_length(), high.bit_length()) + (low < 0)
    sizes = (8, 16, 32) if "packed" in type_.attributes else (32,)
    bits = next((size for size in sizes if needed <= size), 64)
    return f"{'i' if low < 0 else 'u'}{bits}"


def extent_of(tokens: tuple[str, ...], item: CType, name: str, scope: Scope) -> str:
    """Return an extent as a number or the name of a parameter; empty if it is unknown."""
    words = tuple(w for w in tokens if w not in ("static", "const", "restrict", "volatile"))
    if not words or words == ("*",):
        return ""
    value = scope.extent(words)
    if value is not None and 0 < value < 1 << 63:
        return str(value)
    if len(words) == 1 and re.fullmatch(r"[A-Za-z_]\w*", words[0]):
        return words[0]
    what = f"extent {shown(' '.join(words))} is neither a positive number nor a parameter name"
    raise UnsupportedError(what, render(Pointer(item), name))
