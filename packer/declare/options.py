"""The options of a declared function: each is checked against its parameters and its result."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from runtime.error import near_names, shown

from .c.numbers import NUMBERS
from .declaration import SIGNED, UNSIGNED, Declaration, FunctionDeclaration, Parameter, is_handle

C_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
KEYS = FunctionDeclaration._fields
_KEPT = ("fn", "*void", "&void")  # the codes of what C code may keep
_FLOATS = ("f16", "bf16", "f32", "f64")


def function_declaration(given: Any, refuse: Callable[[str], NoReturn]) -> FunctionDeclaration:
    """Read a declaration: text, a mapping of options, or both in a FunctionDeclaration."""
    if isinstance(given, str):
        return FunctionDeclaration(given)
    if isinstance(given, Mapping):
        for key in given:
            if key not in KEYS:
                refuse(f"unknown option {key!r}{near_names(str(key), list(KEYS))}")
        if not given:
            refuse("no options, expected a declaration: 'int(int a)'")
        given = FunctionDeclaration(**given)
    if not isinstance(given, FunctionDeclaration):
        refuse(f"expected a C function type like 'int64_t(int64_t n)', found {shown(given)}")
    if not isinstance(given.declaration, str):
        refuse(f"expected a C function type like 'int64_t(int64_t n)', found {shown(given)}")
    for text, what in _wrong_types(given):
        refuse(f"{text}, expected {what}, found {shown(getattr(given, text))}")
    return given._replace(out=tuple(given.out), defaults=dict(given.defaults))


def _wrong_types(given: FunctionDeclaration) -> Iterator[tuple[str, str]]:
    """Yield the options of a wrong type or text, with what was expected."""
    if not re.fullmatch(r"[^\0\ud800-\udfff]*", given.doc if isinstance(given.doc, str) else "\0"):
        yield "doc", "text without NUL and surrogates"
    if given.gil not in ("release", "keep"):
        yield "gil", "'release' or 'keep'"
    for key in ("free", "symbol", "lifetime"):
        text = getattr(given, key)
        if not isinstance(text, str) or (text and not C_NAME.fullmatch(text)):
            yield key, "the name of a parameter" if key == "lifetime" else "the name of a function"
    if not isinstance(given.errno, bool):
        yield "errno", "true or false"
    if isinstance(given.out, str) or not isinstance(given.out, Sequence):
        yield "out", "a list of names of parameters: ['" + str(given.out) + "']"
    kept = given.kept
    words = [*kept.keys(), *kept.values()] if isinstance(kept, Mapping) else [kept]
    if not all(isinstance(word, str) for word in words):
        yield "kept", "the name of a parameter, 'forever', or a table of parameters"
    if not isinstance(given.defaults, Mapping):
        yield "defaults", "a table of parameters and values"


def problem_of(declaration: Declaration) -> str:
    """Return what is wrong with the options of a declaration; empty if nothing is."""
    for check in (_out, _errno, _lifetime, _free, _defaults, _kept):
        if text := check(declaration):
            return text
    return ""


def missing_free(declaration: Declaration, others: Mapping[str, Declaration]) -> str:
    """Return what is wrong with the function that releases handles; empty if nothing is."""
    kinds = declaration.handles
    if not declaration.free or not kinds:
        return ""
    kind = kinds[0] if kinds[0] == "void" else f"struct {kinds[0]}"
    name, expected = declaration.free, f"void({kind} *handle)"
    accepted = [f"@{kinds[0]}", f"*{{{kinds[0]}}}", f"&{{{kinds[0]}}}", "*void", "&void"]
    found = others.get(name)
    if found is None:
        return f"free {name!r}: not declared; declare it too: {name} = {expected!r}"
    passed = [p.code for p in found.passed]
    if len(passed) != 1 or passed[0] not in accepted:
        return f"free {name!r}: expected a function of the handle alone: {expected!r}"
    return ""


def _out(declaration: Declaration) -> str:
    by_name = {p.name: p for p in declaration.parameters}
    for name in declaration.out:
        if name not in by_name:
            return f"out {name!r}: no such parameter{near_names(str(name), list(by_name))}"
        if declaration.out.count(name) > 1:
            return f"out {name!r}: listed twice; remove one"
        parameter = by_name[name]
        value = parameter.code[1:]
        is_value = value in NUMBERS or value[:1] in ("{", "=", "@", "*", "&")
        is_value |= value in ("str", "longdouble")
        if parameter.code[0] != "*" or not is_value or value.endswith("]"):
            return (
                f"out {name!r}: {parameter.type_text}, expected a pointer to one number, struct or"
                f" handle, such as 'double *{name}'"
            )
    return ""


def _errno(declaration: Declaration) -> str:
    result = declaration.result
    if not declaration.errno or result in SIGNED or result[0] in "*&@" or result == "str":
        return ""
    return (
        f"errno: the result is {declaration.result_text}, expected a signed integer or a pointer,"
        " which report a failure by -1 or NULL; remove errno"
    )


def _lifetime(declaration: Declaration) -> str:
    name = declaration.lifetime
    if not name:
        return ""
    codes = {p.name: p.code for p in declaration.passed}
    if name not in codes:
        return f"lifetime {name!r}: no such parameter{near_names(name, list(codes))}"
    if not _is_handle(codes[name]):
        return f"lifetime {name!r}: not a handle, expected a parameter such as 'struct foo *{name}'"
    if not declaration.handles and declaration.result[0] not in "*&":
        return "lifetime: the function returns no handle; remove lifetime"
    return ""


def lifetimes_of(
    given: str | Mapping[str, str], parameters: Sequence[Parameter]
) -> Mapping[str, str]:
    """Return the lifetime of each kept parameter; text is for all that can be kept."""
    if not given:
        return {}
    if not isinstance(given, str):
        return dict(given)
    handles = [p.name for p in parameters if _is_handle(p.code)]
    if given == "kept":
        given = handles[0] if handles else "forever"
    return {p.name: given for p in parameters if p.code in _KEPT} or {"": given}


def _is_handle(code: str) -> bool:
    return code[0] == "@" or code[:2] in ("*{", "&{")


def _kept(declaration: Declaration) -> str:
    codes = {p.name: p.code for p in declaration.passed}
    for name, lifetime in declaration.kept.items():
        if not name:
            return "kept: the function has neither a callback nor void * parameters; remove kept"
        if name not in codes:
            return f"kept {name!r}: no such parameter{near_names(name, list(codes))}"
        if codes[name] not in _KEPT:
            return f"kept {name!r}: expected a function pointer or void *; remove it"
        if lifetime not in ("call", "forever") and not _is_handle(codes.get(lifetime, "-")):
            handles = [*map(repr, (n for n, c in codes.items() if _is_handle(c))), "'forever'"]
            return f"kept {name!r}: expected {' or '.join(handles)}, found {lifetime!r}"
    return ""


def _free(declaration: Declaration) -> str:
    codes = [declaration.result, *(p.code.removeprefix("*") for p in declaration.returned)]
    if not declaration.free or any(is_handle(c) or c in ("str", "*char") for c in codes):
        return ""
    return (
        f"free: the function returns {declaration.result_text}, expected text or a handle;"
        " remove free"
    )


def _defaults(declaration: Declaration) -> str:
    passed = [p.name for p in declaration.passed]
    for name in declaration.defaults:
        if name not in passed:
            return f"default of {name!r}: no such parameter{near_names(str(name), passed)}"
    for parameter in declaration.passed[len(passed) - len(declaration.defaults) :]:
        if parameter.name not in declaration.defaults:
            first = next(iter(declaration.defaults))
            return (
                f"default of {first!r}: {parameter.name!r} after it has none, expected defaults of"
                " the last parameters only; give that one a default too"
            )
    for parameter in declaration.passed:
        if parameter.name in declaration.defaults:
            value = declaration.defaults[parameter.name]
            if expected := _expected_default(parameter.code, value):
                return f"default of {parameter.name!r}: expected {expected}, found {_shown(value)}"
    return ""


def _expected_default(code: str, value: Any) -> str:
    """Return what a default must be, or empty text if this one is right."""
    if code in (*SIGNED, *UNSIGNED):
        bits = int(code[1:])
        low, high = (
            (-(1 << bits - 1), (1 << bits - 1) - 1) if code[0] == "i" else (0, (1 << bits) - 1)
        )
        fits = isinstance(value, int) and low <= value <= high
        return "" if fits else f"an int in {low} .. {high}"
    if code == "char":
        return "" if isinstance(value, int) and 0 <= value < 128 else "an int in 0 .. 127"
    if code == "bool":
        return "" if isinstance(value, bool) else "true or false"
    if code in _FLOATS:
        is_number = isinstance(value, (int, float)) and math.isfinite(value)
        return "" if is_number else "a finite number"
    if code == "str":
        is_text = isinstance(value, str) and "\0" not in value and _is_utf8(value)
        return "" if is_text or value is None else "None, or text without NUL"
    if code[0] in "*&@" or code == "fn" or code.startswith("strs"):
        return "" if value is None else "None, which is NULL"
    return "no default for this type"


def _shown(value: Any) -> str:
    """Show a value; Python refuses to write an int of thousands of digits."""
    is_long = isinstance(value, int) and value.bit_length() > 200
    return f"an int of {value.bit_length()} bits" if is_long else shown(value)


def _is_utf8(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _quoted(text: str) -> str:
    return f'"{text}"'
