"""Changes of generated C: no comments, no symbols, no large arrays on the stack."""

from __future__ import annotations

import re
from math import prod
from typing import NamedTuple

from .emx import ENTRY

_ON_STACK = 4096  # bytes of an array that stays there
_ALIGNMENT = 64
_SIZES = {
    "bool": 1,
    "char": 1,
    "idx_t": 8,
    "int": 4,
    "float": 4,
    "double": 8,
    "_Float16": 2,
    "__bf16": 2,
    **{f"{sign}int{bits}_t": bits // 8 for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
_COMMENT = re.compile(r"^/\*.*?\*/\n", re.MULTILINE | re.DOTALL)
_GLOBAL = re.compile(  # the first line of a definition; a parameter's ends in a comma
    r"^(?:extern )?(?=(?:const|void|_Bool|[a-z]\w*_t|float|double|int|bool) [^\n]*[;{]$)", re.M
)
_FUNCTION = re.compile(
    r"^(?:EMX_NODE_FN|static(?: inline)?)\b[^;{}=]*?\b(\w+)\([^;{}]*?\) \{$", re.M
)
_ARRAY = re.compile(r"^( +)(\w+) (\w+)((?:\[[\d *+()]+\])+);$", re.M)


class Text(NamedTuple):
    """Generated C in which only static symbols are."""

    code: str  # it defines `ENTRY`
    workspace: int  # bytes of scratch memory that `ENTRY` gets as its first argument, if not 0


def tidy(text: str) -> Text:
    """Make generated C fit into a library beside other operators."""
    text = _COMMENT.sub("", text)
    text = _GLOBAL.sub("static ", text)
    text = re.sub(r"^( *case \d+:)$", r"\1;", text, flags=re.M)  # before C23 no declaration follows
    text = _without_load(text)
    return _without_large_arrays(_with_bytes_for_bits(text))


def _without_load(text: str) -> str:
    """Remove the function that reads weights of a file, which no text has."""
    start = text.index(f"static _Bool {ENTRY}_load(")
    end = text.index("\n}\n", start) + 3
    return text[:start] + text[end:]


def _with_bytes_for_bits(text: str) -> str:
    """Store integers of 2 and 4 bits in bytes; GCC 12 has no ``_BitInt``.

    The caller takes the low bits of what is written.
    """
    text = re.sub(r"\(unsigned _BitInt\(\d\)\)", "(uint8_t)(int)", text)
    text = re.sub(r"\(_BitInt\(\d\)\)", "(int8_t)(int)", text)
    text = re.sub(r"unsigned _BitInt\(\d\)", "uint8_t", text)
    return re.sub(r"_BitInt\(\d\)", "int8_t", text)


def _without_large_arrays(text: str) -> Text:
    """Move arrays of fixed size from the stack to the workspace."""
    offset = 0
    users: set[str] = set()
    starts = [(found.start(), found[1]) for found in _FUNCTION.finditer(text)]

    def moved(found: re.Match[str]) -> str:
        nonlocal offset
        indent, type_, name, dims = found.groups()
        extents = [_number(extent) for extent in re.findall(r"\[([^]]*)\]", dims)]
        nbytes = _SIZES.get(type_, 0) * prod(extents)
        function = next(name for start, name in reversed(starts) if start < found.start())
        used_whole = re.search(rf"sizeof\(?{name}\b", text)
        if nbytes <= _ON_STACK or used_whole:
            return found[0]
        users.add(function)
        rest = "".join(f"[{extent}]" for extent in extents[1:])
        place = f"(void *)((char *)dso_workspace + {offset})"
        offset += -(-nbytes // _ALIGNMENT) * _ALIGNMENT
        left = f"(*{name}){rest}" if rest else f"*{name}"
        return f"{indent}{type_} {left} = {place};"

    text = _ARRAY.sub(moved, text)
    if not users:
        return Text(text, 0)
    for function in {*users, ENTRY}:
        text = re.sub(rf"(\bvoid {function}\()", r"\1void *dso_workspace, ", text)
        text = re.sub(rf"^( +{function}\()", r"\1dso_workspace, ", text, flags=re.M)
    return Text(text, offset)


def _number(expression: str) -> int:
    """Return the value of a constant expression of numbers, ``*`` and ``+``."""
    terms = expression.replace("(", "").replace(")", "").split("+")
    return sum(prod(int(factor) for factor in term.split("*")) for term in terms)
