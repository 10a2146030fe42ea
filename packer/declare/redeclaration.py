"""Redeclarations: C text after the user's source, by which the compiler checks declarations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from runtime.error import ExportError

from .c.check import CALL_PREFIX, IN_C_ONLY
from .c.tokens import STANDARD
from .c.types import Array, CType, Declared, Function, Pointer, Tagged, render
from .declaration import Declaration

# A redeclaration follows any source, so it needs no header: it uses the compiler's type macros, and
# the words of the types that have no macro.
_MACROS = re.compile(
    r"(u?int(_least|_fast)?\d+|u?intptr|u?intmax|size|ptrdiff|wchar|wint|char\d+)_t"
)
_CPP_WORDS = {"wchar_t", "char16_t", "char32_t", "char8_t"}
_NO_NAMES: Mapping[str, str] = MappingProxyType({})
_BOOL = {"c": "_Bool", "cc": "bool"}
# The user's warnings are for the user's code. Other compilers ignore the pragmas of one.
_NO_WARNINGS = """
#if defined(__clang__)
#pragma clang diagnostic ignored "-Weverything"
#elif defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wredundant-decls"
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Warray-parameter"
#pragma GCC diagnostic ignored "-Wvla-parameter"
#endif"""
# A call that the header's prototype does not allow is an error, as it is in C++.
_STRICT = """\
#if defined(__clang__) && !defined(__cplusplus)
#pragma clang diagnostic error "-Wimplicit-function-declaration"
#pragma clang diagnostic error "-Wint-conversion"
#pragma clang diagnostic error "-Wincompatible-pointer-types"
#elif defined(__GNUC__) && !defined(__cplusplus)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#pragma GCC diagnostic ignored "-Wformat-security"
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic error "-Wimplicit-function-declaration"
#pragma GCC diagnostic error "-Wint-conversion"
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#pragma GCC diagnostic error "-Wdiscarded-qualifiers"
#endif"""


def redeclarations(declarations: Sequence[Declaration], language: str) -> str:
    """Return the C or C++ text to append to a user's source; packed C functions are skipped.

    Raises ExportError if a name is not a C name.
    """
    checked = [d for d in declarations if d.abi == "safe_call"]
    called = [d for d in checked if d.check.calls]
    lines = ["", _NO_WARNINGS, '#line 1 "<function declarations>"']
    lines += ['extern "C" {'] if language == "cc" else []
    lines += [_redeclaration(d, language) for d in checked if not d.check.calls]
    if called:
        lines += [_STRICT, *(_call(d, language) for d in called)]
    lines += ["}"] if language == "cc" else []
    return "\n".join([*lines, *_conditions(checked, language)]) + "\n"


def _redeclaration(declaration: Declaration, language: str) -> str:
    if "." in declaration.name:
        raise ExportError(f"function {declaration.name!r}: the name has a '.', expected a C name")
    function = declaration.check.function
    assert function is not None
    promise = " noexcept" if function.is_noexcept and language == "cc" else ""
    return f"extern {_prototype(function, declaration.name, language)}{promise};"


def _prototype(function: Function, name: str, language: str, names: Sequence[str] = ()) -> str:
    extents = dict(zip((p.name for p in function.parameters), names, strict=False))
    texts = [
        render(_portable(p.type, language, extents), names[i] if names else "", names=False)
        for i, p in enumerate(function.parameters)
    ]
    return render(_portable(function.result, language), f"{name}({', '.join(texts) or 'void'})")


def _call(declaration: Declaration, language: str) -> str:
    """Define the function that calls a function or a macro; an error names the declaration."""
    function, calls = declaration.check.function, declaration.check.calls
    assert function is not None
    names = [f"packer_{i}" for i in range(len(function.parameters))]
    head = _prototype(function, CALL_PREFIX + declaration.name, language, names)
    call = declaration.check.expression or f"{calls}({', '.join(names)})"
    if declaration.result != "void":
        call = f"return {call}"
    where = f"declaration of {declaration.name}"
    hidden = '__attribute__((visibility("hidden")))'
    return f'#line 1 "<{where}>"\n{hidden} {head};\n{head} {{ {call}; }}'


def _conditions(declarations: Sequence[Declaration], language: str) -> Iterator[str]:
    """Yield the assertions of all declarations; each names the first that needs it."""
    word = "_Static_assert" if language == "c" else "static_assert"
    owners: dict[str, str] = {}
    for declaration in declarations:
        for condition in declaration.check.conditions:
            owners.setdefault(condition, declaration.name)
    for condition, name in owners.items():
        if condition.endswith(IN_C_ONLY) and language == "cc":
            continue
        text = condition.removesuffix(IN_C_ONLY)
        yield f'#line 1 "<declaration of {name}>"'
        yield f'{word}({text}, "declaration of {name}: {text}");'


def _portable(type_: CType, language: str, extents: Mapping[str, str] = _NO_NAMES) -> CType:
    """Spell the standard types so that no header is needed.

    `extents` are the names of parameters in extents; without them such an extent is a star.
    """
    if isinstance(type_, Pointer):
        is_array = isinstance(type_.target, Array)
        portable = _portable_items if is_array else _portable
        inner = portable(type_.target, language, extents)
        quals = tuple(q for q in type_.quals if q != "restrict" or language == "c")
        return Pointer(inner, quals)
    if isinstance(type_, Function):
        parameters = tuple(Declared("", _portable(p.type, language)) for p in type_.parameters)
        return type_._replace(result=_portable(type_.result, language), parameters=parameters)
    if isinstance(type_, Array):
        return Pointer(_portable_items(type_.item, language, extents))
    if isinstance(type_, Tagged) or len(type_.words) > 1:
        return type_
    (word,) = type_.words
    return type_._replace(words=_portable_words(word, language))


def _portable_items(type_: CType, language: str, extents: Mapping[str, str]) -> CType:
    """Spell the items of an array that is a parameter: an inner extent is part of its type."""
    if not isinstance(type_, Array):
        return _portable(type_, language, extents)
    item = _portable_items(type_.item, language, extents)
    is_number = len(type_.extent) == 1 and type_.extent[0].isdigit()
    if language == "cc" and not is_number:
        return item
    named = tuple(extents.get(token, token) for token in type_.extent)
    return Array(item, named if is_number or extents else ("*",))


def _portable_words(word: str, language: str) -> tuple[str, ...]:
    if word in ("bool", "_Bool"):
        return (_BOOL[language],)
    if word == "dso_status":
        return ("int",)
    if word not in STANDARD or (language == "cc" and word in _CPP_WORDS):
        return (word,)
    if _MACROS.fullmatch(word):
        return (f"__{word[:-2].upper()}_TYPE__",)
    return STANDARD[word]
