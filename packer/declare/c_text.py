"""C text: literals and variables."""

from __future__ import annotations

from collections.abc import Iterator

from .declaration import joined

_ESCAPES = {"\n": "\\n", '"': '\\"', "\\": "\\\\", "?": "\\?"}
_WRITTEN = tuple(
    _ESCAPES.get(chr(byte)) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}")
    for byte in range(256)
)


def c_string(text: str) -> str:
    """A C string literal of text in UTF-8."""
    return c_string_of(text.encode())


def c_string_of(data: bytes) -> str:
    """A C string literal: three octal digits end an escape, and "?" may begin a trigraph."""
    return f'"{"".join(map(_WRITTEN.__getitem__, data))}"'


def variable(c_type: str, name: str, mark: str = "") -> Iterator[str]:
    """Define a variable that is zero."""
    if c_type.startswith("dso_struct_") or c_type == "dso_any":
        yield f"{c_type} {name};"
        yield f"__builtin_memset(&{name}, 0, sizeof {name});"
    else:
        yield f"{joined(c_type, name)}{mark} = 0;"
