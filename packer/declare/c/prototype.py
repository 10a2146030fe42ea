"""Prototypes that tell how a function is called: packed functions, and parameters for results."""

from __future__ import annotations

from .numbers import CONVERTED, number_code
from .scope import Scope
from .types import CType, Function, Named, Pointer, Tagged

_VALUES = ("TVMValue", "void *")
_PACKED = (_VALUES, ("int *",), ("int",), _VALUES, ("int *",), ("void *",))


def results_of(function: Function, scope: Scope) -> tuple[str, ...]:
    """Return the parameters that can only be results: pointers to handles."""
    return tuple(
        declared.name
        for declared in function.parameters
        if declared.name and _is_handle_result(declared.type, scope)
    )


def _is_handle_result(type_: CType, scope: Scope) -> bool:
    found = scope.resolved(type_)
    target = scope.resolved(found.target) if isinstance(found, Pointer) else None
    if not isinstance(target, Pointer) or "const" in target.quals:
        return False
    last = scope.resolved(target.target)
    return isinstance(last, Tagged) and last.kind != "enum"


def in_double(function: Function, scope: Scope) -> Function:
    """Return a type whose wider floating types are double, to which the compiler converts them."""

    def plain(type_: CType) -> CType:
        found = scope.resolved(type_)
        words = CONVERTED.get(tuple(sorted(found.words)), "") if isinstance(found, Named) else ""
        return Named(tuple(words.split())) if "double" in words else type_

    parameters = tuple(p._replace(type=plain(p.type)) for p in function.parameters)
    return function._replace(result=plain(function.result), parameters=parameters)


def is_packed(function: Function) -> bool:
    """Return True for the prototype of TVM's packed C functions."""
    if len(function.parameters) != len(_PACKED) or not _is_int(function.result):
        return False
    texts = [_packed_word(p.type) for p in function.parameters]
    is_named = "TVMValue" in texts or "type" in function.parameters[1].name
    return is_named and all(t in known for t, known in zip(texts, _PACKED, strict=True))


def _packed_word(type_: CType) -> str:
    """Return what a parameter is in the terms of packed functions; empty for any other type."""
    if _is_int(type_):
        return "int"
    target = type_.target if isinstance(type_, Pointer) else getattr(type_, "item", None)
    if not isinstance(target, Named):
        return ""
    if target.words == ("TVMValue",):
        return "TVMValue"
    if target.words == ("void",):
        return "void *"
    return "int *" if _is_int(target) else ""


def _is_int(type_: CType) -> bool:
    if not isinstance(type_, Named):
        return False
    return number_code(type_.words) == "i32" or type_.words == ("int32_t",)
