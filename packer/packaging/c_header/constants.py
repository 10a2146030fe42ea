"""The constants of a library's C code, as macros of its header."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.constants import ConstantsRecord, Value

from ...declare.c_text import c_string_of
from .names import Names


def values_text(record: ConstantsRecord, prefix: str, taken: Iterable[str]) -> str:
    """Return a macro for each constant, with the prefix; none has a name that is `taken`."""
    names = Names(*taken)
    lines = [
        f"#define {names.add(f'{prefix.upper()}_{name}')} {_literal(value)}"
        for name, value in record.plain().items()
    ]
    return "\n".join(["/* Constants of the C code. */", *lines]) if lines else ""


def _literal(value: Value) -> str:
    """Return a value as C writes it, of a type that has it."""
    if isinstance(value, str | bytes):
        return c_string_of(value.encode() if isinstance(value, str) else value)
    if isinstance(value, float):
        return repr(value) if value >= 0 else f"({value!r})"
    if value < 0:
        return f"({value})" if value >= -(1 << 31) + 1 else f"(-{-value - 1}LL - 1)"
    return f"{value}{'ULL' if value >= 1 << 63 else 'LL' if value >= 1 << 31 else ''}"
