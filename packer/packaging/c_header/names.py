"""Names, comments and literals in C and C++, made of text of any kind."""

from __future__ import annotations

import re

# Words that may not name a parameter, in C or in C++.
_WORDS = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept
const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype
default delete do double dynamic_cast else enum explicit export extern false float for friend
goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq
private protected public register reinterpret_cast requires restrict return short signed sizeof
static static_assert static_cast struct switch template this thread_local throw true try typedef
typeid typename union unsigned using virtual void volatile wchar_t while xor xor_eq
"""
_RESERVED = frozenset(_WORDS.split())


class Names:
    """Different identifiers for different texts."""

    def __init__(self, *taken: str) -> None:
        self._taken = set(taken)

    def add(self, text: str) -> str:
        """Return an identifier that is not taken: of the text, with a number if needed."""
        name = first = identifier(text)
        number = 2
        while name in self._taken:
            name = f"{first}_{number}"
            number += 1
        self._taken.add(name)
        return name


def identifier(text: str) -> str:
    """Return the text with ``_`` for each character that a name in C may not have."""
    name = re.sub(r"[^0-9A-Za-z_]", "_", text)
    return f"_{name}" if not name or name[0].isdigit() else name + "_" * (name in _RESERVED)


def comment(text: str) -> str:
    """Return text that neither ends a comment nor begins one."""
    printable = "".join(c if c.isprintable() else " " for c in text)
    return printable.replace("*/", "* /").replace("/*", "/ *").rstrip("\\ ")


def literal(text: str) -> str:
    """Return a string literal with the UTF-8 bytes of the text."""
    plain = (chr(byte) if _is_plain(byte) else f"\\{byte:03o}" for byte in text.encode())
    return f'"{"".join(plain)}"'


def _is_plain(byte: int) -> bool:
    return 32 <= byte < 127 and chr(byte) not in '"\\?'  # ?? may begin a trigraph
