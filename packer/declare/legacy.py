"""Packed C functions over the wrappers, for TVM to 2025 (``templates/glue_legacy.h``)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from runtime.error import ExportError

from .c_text import c_string
from .code import split_extents
from .results import INITIALIZER, results_of

if TYPE_CHECKING:
    from .declaration import Declaration

_ARGUMENTS = (
    "(dso_legacy_value *args, int *codes, int num_args, dso_legacy_value *out, int *out_code, "
    "void *resource)"
)


def packed_lines(index: int, declaration: Declaration, symbol: str) -> Iterator[str]:
    """The packed C function of one wrapper.

    Raises ExportError if TVM's values cannot have one of its arguments or results.
    """
    if problem := _problem(declaration):
        text = f"legacy_calls: function {declaration.name!r} {problem}"
        advice = "leave the function out, or export without legacy_calls"
        raise ExportError(f"{text}, which TVM to 2025 cannot call; {advice}")
    name = f"dso_packed_{index}"
    yield f"DSO_EXPORT int {name}{_ARGUMENTS} DSO_SYMBOL({c_string(symbol)});"
    yield f"int {name}{_ARGUMENTS} {{"
    yield "  (void)resource;"
    call = "initialize" if declaration.name.startswith(INITIALIZER) else "call"
    called = f"&dso_function_{index}, dso_wrapper_{index}"
    yield f"  return dso_{call}_legacy({called}, args, codes, num_args, out, out_code);"
    yield "}"


def _problem(declaration: Declaration) -> str:
    """Say what TVM's values lack; empty if nothing."""
    results = results_of(declaration)
    if len(results) > 1:
        return f"has {len(results)} results, expected one"
    if results and (results[0].code in ("c64", "c128") or results[0].code[0] in "{="):
        return "returns an array"
    called = [p for callback in declaration.callbacks for p in callback.parameters]
    for parameter in (*declaration.passed, *called):
        code, _ = split_extents(parameter.code)
        if code == "strs" or code[0] in "{=":
            return f"takes an array for {parameter.name!r} ({parameter.type_text})"
    return ""
