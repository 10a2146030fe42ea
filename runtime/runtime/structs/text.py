"""Text as the memory of C: of char, and of the wider characters that C has."""

from __future__ import annotations

import re

from ..error import shown
from .layout import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .._core import Function

# The size, encoding and format of one unit of wchar_t, char16_t and char32_t, by its code.
UNITS: dict[str, tuple[int, str, Any]] = {
    "i32": (4, "utf-32-le", "i"),
    "u32": (4, "utf-32-le", "I"),
    "u16": (2, "utf-16-le", "H"),
}
_IS_WIDE = re.compile(r"\b(wchar_t|char16_t|char32_t)\b")
_INNER = re.compile(r"\([^()]*\)")  # of a function that a parameter points to


def encoded_text(value: str | bytes, where: str, encoding: str = "utf-8") -> bytes:
    """Return text as bytes, for the field `where`."""
    try:
        return value.encode(encoding) if isinstance(value, str) else value
    except UnicodeEncodeError:
        name = encoding.upper()
        text = f"field {where!r}: expected a str that {name} can encode, found {value!a}"
        raise Refused(ValueError, text) from None


def text_memory(code: str, value: str | bytes, where: str) -> memoryview:
    """Return text with a NUL; C may write to it if the code is not ``str``."""
    data = encoded_text(value, where)
    if b"\0" in data:
        text = f"field {where!r}: expected text without NUL, found {shown(value)}"
        raise Refused(ValueError, text)
    return memoryview(bytearray(data + b"\0") if code == "*char" else data + b"\0")


def is_wide(signature: str | None, parameters: Sequence[tuple[str, str]], index: int) -> bool:
    """Return True if a parameter points to constant wide characters."""
    name, code = parameters[index]
    written = _INNER.sub("", (signature or "").partition("(")[2][:-1]).split(",")
    named = (text for text in written if re.search(rf"\b{re.escape(name)}\b", text))
    own = written[index] if len(written) == len(parameters) else next(named, "")
    return code[:1] == "&" and code[1:] in UNITS and bool(_IS_WIDE.search(own))


def wide_text(function: Function, index: int, value: str) -> memoryview | None:
    """Return text with a NUL for a pointer to wide characters; None for other parameters."""
    parameters = function._declared[0]
    if not is_wide(function.signature, parameters, index):
        return None
    name, code = parameters[index]
    _, encoding, format_ = UNITS[code[1:]]
    return memoryview(encoded_text(f"{value}\0", name, encoding)).cast(format_)
