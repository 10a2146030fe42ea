"""Results: the C text that calls the declared function and stores what it returns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .c_text import variable
from .callbacks import calling_lines, enter_lines, has_calling, stray_lines
from .code import Scope, kind_of
from .declaration import SIGNED, Declaration, is_handle

INITIALIZER = "__init_"  # of TVM's const_loader, which refuses one that does not return the int 0
_ZERO = "dso_give_signed(result, 0)"
_NO_RESULT = ("void", "status")


class Result(NamedTuple):
    """One value that the function produced: the C expression and its code."""

    value: str
    code: str


def results_of(declaration: Declaration) -> list[Result]:
    """Return the values of a call, in the order of the results."""
    own = [] if declaration.result in _NO_RESULT else [Result("r", declaration.result)]
    places = {p.name: i for i, p in enumerate(declaration.parameters)}
    return own + [Result(f"a{places[p.name]}", p.code) for p in declaration.returned]


def call_lines(
    index: int, declaration: Declaration, scope: Scope, call: str, checks: Sequence[str]
) -> Iterator[str]:
    """The call, and what follows it in the wrapper; `checks` set the status after the call."""
    is_plain = not (declaration.out or declaration.errno or declaration.callbacks or checks)
    if is_plain and not frees(declaration):
        yield from _plain_lines(declaration, scope, call)
        return
    has_kept = any("dso_take_failed" in check for check in checks)
    is_void = declaration.result == "void"
    if not is_void:
        yield from variable(kind_of(declaration.result, scope).c_type, "r")
    yield "int status = 0;"
    yield from calling_lines(declaration)
    if declaration.errno:
        yield "errno = 0;"
    yield "DSO_TRY"
    yield "{"  # at its end the callbacks are left
    yield from (f"  {line}" for line in enter_lines(index, declaration))
    if has_kept:
        yield "  DSO_UNUSED int is_running DSO_RUNNING = dso_begin_running();"
    yield f"  {call};" if is_void else f"  r = {call};"
    yield "}"
    ending = "calling.status" if has_calling(declaration) else "0"
    yield f"DSO_CATCH({f'{ending} | dso_take_failed()' if has_kept else ending})"
    yield from stray_lines(declaration)
    yield from checks
    if declaration.errno and not is_void:
        failure = "r == -1" if declaration.result in SIGNED else "!r"
        yield f"if (!status && {failure}) return dso_raise_errno();"
    if declaration.result == "status":
        yield "if (r) return -1;"
    yield from _give_lines(index, declaration, scope)


def frees(declaration: Declaration) -> bool:
    """Return True if the wrapper calls the function that releases a result."""
    return bool(declaration.free) and any(map(_is_owned, results_of(declaration)))


def _is_owned(result: Result) -> bool:
    return is_handle(result.code) or result.code in ("str", "*char")


def _plain_lines(declaration: Declaration, scope: Scope, call: str) -> Iterator[str]:
    none = _ZERO if declaration.name.startswith(INITIALIZER) else "0"
    yield "DSO_TRY"
    if declaration.result == "void":
        yield f"{call};"
        yield f"return {none};"
    elif declaration.result == "status":
        yield f"return {call} ? -1 : {none};"
    else:
        yield f"return dso_give_{kind_of(declaration.result, scope).give}(result, {call});"
    yield "DSO_CATCH(0)"


def _give_lines(index: int, declaration: Declaration, scope: Scope) -> Iterator[str]:
    results = results_of(declaration)
    count = len(results)
    if count == 1:
        ((value, code),) = results
        yield f"if (!status) status = dso_give_{kind_of(code, scope).give}(result, {value});"
    elif count:
        yield f"dso_any items[{count}];"
        yield "__builtin_memset(items, 0, sizeof items);"
        for i, (value, code) in enumerate(results):
            give = kind_of(code, scope).give
            yield f"if (!status) status = dso_give_{give}(&items[{i}], {value});"
        yield f"status = dso_give_items(result, items, {count}, status);"
    elif declaration.name.startswith(INITIALIZER):
        yield f"if (!status) status = {_ZERO};"
    yield from _free_lines(index, declaration, results)
    yield "return status;"


def _free_lines(index: int, declaration: Declaration, results: list[Result]) -> Iterator[str]:
    """Text is copied, so it is released; a handle only if it is not returned."""
    if not declaration.free:
        return
    handles = [result.value for result in results if is_handle(result.code)]
    texts = [result.value for result in results if result.code in ("str", "*char")]
    for value in handles:
        yield f"if (status && {value}) dso_free_{index}((void *)(uintptr_t){value});"
    if not handles:
        yield from (f"if ({v}) dso_free_{index}((void *)(uintptr_t){v});" for v in texts)
