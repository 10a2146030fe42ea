"""Literals of C: numbers, characters and text."""

from __future__ import annotations

import re
import struct

INTEGERS = {
    code: range(-(1 << bits - 1), 1 << bits - 1) if code[0] == "i" else range(1 << bits)
    for bits in (8, 16, 32, 64)
    for code in (f"i{bits}", f"u{bits}")
}
FLOATS = frozenset(("f32", "f64", "f80"))
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|0[bB][01]+|[0-9]+)(u?l{0,2}|l{1,2}u)", re.I)
_FLOAT = re.compile(
    r"(0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)p[+-]?[0-9]{1,9}"
    r"|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]{1,9})?)([fl]?)",
    re.I,
)
_TYPES = {"": ("i32", "u32", "i64", "u64"), "u": ("u32", "u64"), "l": ("i64", "u64")}
_FLOAT_TYPES = {"": "f64", "f": "f32", "l": "f80"}
_ESCAPE = re.compile(
    r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]+)|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_SIMPLE = dict(zip("abfnrtve", "\a\b\f\n\r\t\v\x1b", strict=True))
_LONGEST = 400  # characters of a number
# Of normal numbers of f32.
_SMALLEST, _LARGEST = 2.0**-126, (2 - 2.0**-23) * 2.0**127


class LiteralError(Exception):
    """A literal that cannot be read."""


def number(token: str) -> tuple[str, int | float] | None:
    """Return the code of the type of a number, and its value; None if C has no such number."""
    if len(token) > _LONGEST:
        raise LiteralError("a long number")
    if match := _INTEGER.fullmatch(token):
        digits, suffix = match[1].lower(), match[2].lower().replace("ll", "l")
        value = int(digits, 8 if re.fullmatch("0[0-7]+", digits) else 0)
        codes = _TYPES.get(suffix, ("u64",))
        if digits[0] != "0" and "u" not in suffix:
            codes = tuple(code for code in codes if code[0] == "i")
        code = next((code for code in codes if value in INTEGERS[code]), "")
        if code:
            return code, value
    elif match := _FLOAT.fullmatch(token):
        text = match[1].lower()
        return _float(float.fromhex(text) if "x" in text else float(text), match[2].lower())
    else:
        return None
    raise LiteralError(f"the number {token}")


def _float(value: float, suffix: str) -> tuple[str, float]:
    if suffix == "f" and value:
        (bits,) = struct.unpack("Q", struct.pack("d", value))
        # Rounded twice, such a number might be another than the compiler's.
        if bits & 0x1FFFFFFF == 0x10000000 or not _SMALLEST <= value <= _LARGEST:
            raise LiteralError(f"the float {value!r}")
        (value,) = struct.unpack("f", struct.pack("f", value))
    if value == float("inf") or (suffix == "l" and not value.is_integer()):
        raise LiteralError("a float that is not exact as double")
    return _FLOAT_TYPES[suffix], value


def character(token: str) -> tuple[str, int]:
    """Return the code and the value of a character constant; of one whose sign is known."""
    data = _bytes(token[1:-1]) if token[0] == "'" else b""
    if len(data) != 1 or data[0] > 127:
        raise LiteralError(f"the character {token[:40]}")
    return "i32", data[0]


def text_of(token: str) -> bytes:
    """Return the bytes of a string literal."""
    if token[0] != '"':
        raise LiteralError(f"text with a prefix: {token[:40]}")
    return _bytes(token[1:-1])


def _bytes(text: str) -> bytes:
    made, end = bytearray(), 0
    for match in _ESCAPE.finditer(text):
        made += text[end : match.start()].encode("utf-8", "surrogateescape")
        made += _escape(match)
        end = match.end()
    return bytes(made + text[end:].encode("utf-8", "surrogateescape"))


def _escape(match: re.Match[str]) -> bytes:
    octal, hexadecimal, short, long, simple = match.groups()
    if octal or hexadecimal:
        value = int(octal, 8) if octal else int(hexadecimal, 16)
        if value > 255:
            raise LiteralError(f"the escape {match[0]}")
        return bytes([value])
    if simple:
        return _SIMPLE.get(simple, simple).encode()
    try:
        return chr(int(short or long, 16)).encode()
    except (ValueError, OverflowError):
        raise LiteralError(f"the escape {match[0]}") from None
