"""C text after a source, by which its compiler confirms the values of constants."""

from __future__ import annotations

from collections.abc import Iterator

from ..c.expression import Number, Value
from ..c_text import c_string_of
from .found import Constants

# The marker makes each line one of a system header: the warnings are the user's.
_MARKER = '# 1 "<constant {}>" 3'


def confirmations(constants: Constants, language: str) -> str:
    """Return the C or C++ text to append to a source; empty without constants."""
    if not constants.values:
        return ""
    lines = [
        line for name, value in constants.values.items() for line in _lines(name, value, language)
    ]
    return "\n".join(["", *lines, ""])


def _lines(name: str, value: Value, language: str) -> Iterator[str]:
    yield _MARKER.format(name)
    if isinstance(value, Number) and isinstance(value.value, float):
        # An array, since clang has no floats in static assertions of C.
        yield f"extern char packer_float[((double)({name}) == {value.value!r}) ? 1 : -1];"
        return
    word = "_Static_assert" if language == "c" else "static_assert"
    what = f"{name}: the compiler has another value than packer; leave it out of the constants"
    yield f'{word}({_condition(name, value)}, "{what}");'


def _condition(name: str, value: Value) -> str:
    if isinstance(value, Number):
        number = int(value.value or 0)
        sign = "<" if number < 0 else ">="
        return f"({name}) == {_integer(number)} && ({name}) {sign} 0"
    nbytes = len(value.data)
    text = c_string_of(value.data)
    return f"sizeof({name}) == {nbytes + 1} && !__builtin_memcmp({name}, {text}, {nbytes})"


def _integer(value: int) -> str:
    if value < 0:
        return f"(-{-value - 1}LL - 1)"
    return f"{value}{'ULL' if value >= 1 << 63 else 'LL'}"
