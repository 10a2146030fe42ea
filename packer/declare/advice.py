"""Advice of a refusal: a declaration of the same function that an export takes."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .c.code import Codes
from .c.layout import extents_of
from .c.numbers import UnsupportedError
from .c.scope import Scope
from .c.token_reader import CSyntaxError
from .c.tokens import tokens_of
from .c.types import Function, Pointer, render
from .declaration import FunctionDeclaration


def mended(
    name: str, function: Function, whole: FunctionDeclaration, scope: Scope, is_called: bool
) -> Any:
    """Return a declaration with other types where a type is unsupported; None if there is none.

    It is text, or a mapping if options are needed too.
    """
    codes, out = Codes(scope), list(whole.out)
    texts = []
    try:
        for declared in function.parameters:
            try:
                codes.parameter(declared, declared.name in out)
                texts.append(render(declared.type, declared.name))
            except UnsupportedError as error:
                texts.append(_instead(error))
                is_called |= error.is_converted
        texts += ["int value"] if function.is_variadic else []
        try:
            codes.result(function.result)
            head = render(function.result)
        except UnsupportedError as error:
            head = _instead(error)
            is_called |= error.is_converted
    except LookupError:
        return None
    text = f"{head}({', '.join(texts)})"
    options = {"symbol": whole.symbol or name} if is_called else {}
    given = {**options, "declaration": text, **({"out": out} if out else {})}
    return given if len(given) > 1 else text


def _instead(error: UnsupportedError) -> str:
    if not error.instead:
        raise LookupError
    return error.instead


def table(given: dict[str, Any]) -> str:
    """Write options as an inline table of packer.toml."""
    texts = (f"{key} = {_value(value)}" for key, value in given.items())
    return f"{{ {', '.join(texts)} }}"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    return f"[{', '.join(map(_value, value))}]"


def without_extents(function: Function, indices: Collection[int]) -> str:
    """Write a function type in which some parameters, which are arrays, are pointers."""
    texts = [
        render(Pointer(extents_of(p.type)[1]) if i in indices else p.type, p.name)
        for i, p in enumerate(function.parameters)
    ]
    return f"{render(function.result)}({', '.join(texts)})"


def syntax_text(text: str, error: CSyntaxError) -> str:
    """Describe text that is not a function type, and show one that is."""
    what = str(error)
    found = next((token.text for token in tokens_of(text[error.position :])), "")
    is_after = text[: error.position].count("(") == text[: error.position].count(")") > 0
    if "(" not in text or is_after or what.startswith("a storage class"):
        return f"expected one plain C function type, found {text!r}; compare 'int(int a)'"
    if what.startswith("a type is missing") and error.position <= text.index("("):
        works = f"int{text[text.index('(') :]}"
        return f"{what}, found {text!r}; a declaration that works: {works!r}"
    place = f"at column {error.position + 1}, before: {found}" if found else "at its end"
    return f"not a C function type, {place}, found {text!r}; compare 'int(int a)'"
