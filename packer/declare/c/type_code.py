"""The codes of types in constant expressions: numbers for casts, all types for sizeof."""

from __future__ import annotations

from collections.abc import Sequence

from .expression import UncomputedError
from .layout import LayoutError
from .numbers import enum_code, number_code
from .scope import KNOWN, Scope
from .tokens import NUMBER_WORDS, QUALIFIERS, TAGGED, is_word
from .types import CType, Named, Pointer, Tagged

_POINTER = "p64"
_COMPUTED = ("char", "bool", "f32", "f64")


def type_code(tokens: Sequence[str], scope: Scope) -> str:
    """Return the code of the type in parentheses of a cast or sizeof; empty for other tokens.

    Raises UncomputedError for a type whose conversion only the compiler knows.
    """
    words = [token for token in tokens if token not in QUALIFIERS]
    stars = [token for token in words if token == "*"]
    names = words[: len(words) - len(stars)]
    if not names or names + stars != words or not all(map(is_word, names)):
        return ""
    if names[0] in TAGGED:
        return (
            _POINTER if stars else _code(scope.resolved(Tagged(names[0], names[-1])), names, scope)
        )
    if len(names) > 1 and not NUMBER_WORDS.issuperset(names):
        return ""
    type_ = scope.resolved(Named(tuple(names)))
    if names[0] not in KNOWN and not scope.has_typedef(names[0]):
        return ""  # not a type of the unit
    return _POINTER if stars else _code(type_, names, scope)


def _code(type_: CType, names: Sequence[str], scope: Scope) -> str:
    if isinstance(type_, Pointer):
        return _POINTER
    if isinstance(type_, Tagged) and type_.kind == "enum" and not scope.is_cpp:
        return enum_code(type_, scope)
    if isinstance(type_, Named):
        if tuple(sorted(word for word in type_.words if word != "int")) == ("double", "long"):
            return "f80"
        code = number_code(type_.words) or ""
        if code in _COMPUTED or (code[:1] in ("i", "u") and code[1:].isdigit()):
            return code
        if code == "void":
            return ""
    if isinstance(type_, Tagged) and type_.kind != "enum":
        return f"s{_nbytes(type_, scope) * 8}"
    raise UncomputedError(f"the type {' '.join(names)}")


def _nbytes(type_: Tagged, scope: Scope) -> int:
    """Return the size of a struct or union, if its layout is computed."""
    from .aggregate import aggregates_of  # which uses scopes

    try:
        return aggregates_of(scope).whole(type_).size
    except LayoutError as error:
        raise UncomputedError(f"the size of {type_.spelling}") from error
