"""The words of C: text to tokens, and the keywords of declarations."""

from __future__ import annotations

import re
from typing import NamedTuple

_TOKEN = re.compile(
    r"""(?P<skip>\s+|/\*.*?\*/|//[^\n]*|^[ \t]*\#(?:\\\n|[^\n])*)
    |(?P<text>(?:u8|[uUL])?"(?:[^"\\\n]|\\.)*"|[uUL]?'(?:[^'\\\n]|\\.)*')
    |[A-Za-z_$][\w$]*
    |\.?[0-9](?:[eEpP][+-]|[\w.])*
    |\.\.\.|<<|>>|::|[<>=!]=|&&|\|\||.
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE | re.ASCII,
)
_WORD = re.compile(r"[A-Za-z_$]")
STORAGE = {
    *("typedef", "extern", "static", "auto", "register", "_Thread_local", "__thread"),
    *("inline", "__inline", "__inline__"),
}
QUALIFIERS = {
    *("const", "volatile", "restrict", "_Atomic"),
    *("__const", "__volatile__", "__volatile", "__restrict", "__restrict__"),
}
IGNORED = {"__extension__", "_Noreturn", "noexcept", "constexpr", "_Nonnull", "_Nullable"}
WITH_PARENTHESES = {
    *("__attribute__", "__attribute", "__asm__", "__asm", "asm", "__declspec"),
    *("_Alignas", "alignas"),
}
# Attributes that make another type of the one that is written, or another way to call it.
OTHER_TYPES = {
    *("vector_size", "__vector_size__", "ext_vector_type", "mode", "__mode__", "ms_abi"),
    *("__ms_abi__", "regcall", "vectorcall", "preserve_all", "preserve_most", "swiftcall"),
    *("aarch64_vector_pcs", "__aarch64_vector_pcs__", "no_caller_saved_registers"),
}
TYPEOF = "typeof("  # begins the word of such a type
TAGGED = {"struct", "union", "enum"}
SYNONYMS = {
    "__inline": "inline", "__inline__": "inline", "__const": "const", "complex": "_Complex",
    "__volatile__": "volatile", "__volatile": "volatile", "__restrict": "restrict",
    "__restrict__": "restrict", "__signed__": "signed", "__signed": "signed",
    "__complex__": "_Complex",
}  # fmt: skip
NUMBER_WORDS = {
    *("void", "char", "short", "int", "long", "float", "double", "signed", "unsigned"),
    *("bool", "_Bool", "_Complex", "_Float16", "__bf16", "__int128", "_Float128", "__float128"),
    *("_Float32", "_Float64", "_Float32x", "_Float64x", "__signed__", "__signed", "__complex__"),
}
RESERVED = {
    *NUMBER_WORDS, *STORAGE, *QUALIFIERS, *IGNORED, *WITH_PARENTHESES, *TAGGED,
    *("typeof", "__typeof__", "sizeof", "return", "if", "else", "for", "while", "do", "switch"),
}  # fmt: skip


class Token(NamedTuple):
    """One token and its offset in the text."""

    text: str
    position: int


def tokens_of(text: str) -> list[Token]:
    """Split C text into tokens, without comments and preprocessor lines."""
    return [
        Token(match.group(), match.start())
        for match in _TOKEN.finditer(text)
        if match.lastgroup != "skip"
    ]


def is_word(text: str) -> bool:
    """Return True if a token is a name or a keyword."""
    return bool(_WORD.match(text))
