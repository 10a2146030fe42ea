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
# The words of the typedefs of the C library and of POSIX, on machines with 64-bit long.
_STANDARD_WORDS = {
    "signed char": "int8_t int_least8_t int_fast8_t",
    "short": "int16_t int_least16_t",
    "int": "int32_t int_least32_t pid_t clockid_t wchar_t key_t",
    "long": "int64_t int_least64_t int_fast64_t intptr_t intmax_t ptrdiff_t ssize_t off_t off64_t"
    " time_t clock_t suseconds_t blkcnt_t",
    "unsigned char": "uint8_t uint_least8_t uint_fast8_t u_char",
    "unsigned short": "uint16_t uint_least16_t char16_t u_short ushort",
    "unsigned": "uint32_t uint_least32_t char32_t uid_t gid_t mode_t id_t useconds_t socklen_t"
    " wint_t u_int uint",
    "unsigned long": "uint64_t uint_least64_t uint_fast64_t uintptr_t uintmax_t size_t ino_t"
    " dev_t u_long ulong",
}
STANDARD = {
    name: tuple(words.split()) for words, names in _STANDARD_WORDS.items() for name in names.split()
}


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
