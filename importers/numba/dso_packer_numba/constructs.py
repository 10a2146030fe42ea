"""Constructs that need Python: each leaves a mark in the code, a symbol with its place in the file.

LLVM removes the marks of code that never runs. A function that has one at the end is refused.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dis import get_instructions
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from llvmlite import ir
from numba.core import cgutils
from numba.core.lowering import Lower

_PREFIX = "numba.construct"
_OWN = "numba."  # the modules of Numba itself
_PRINT = "print needs Python; return the value"
_BLOCK = "a block of objmode needs Python; compute it without Python, or in the caller"
_YIELD = "yield makes it a generator, which needs Python; fill an array and return it"


class Construct(NamedTuple):
    """A construct: why it is refused, and where it is; no file in code of Numba itself."""

    why: str
    file: str
    line: int


def construct_in(names: Collection[str]) -> Construct | None:
    """Return the first construct among the symbols of a function; None if there is none."""
    found = []
    for name in names:
        if name.startswith(_PREFIX):
            _, why, file, line = name.split("|")
            found.append(Construct(unquote(why), unquote(file), int(line)))
    return min(found, key=lambda one: (not one.file, one.file, one.line), default=None)


def generator_in(function: Any) -> Construct | None:
    """Return the first ``yield`` of a Python function; None if it is not a generator."""
    if not inspect.isgeneratorfunction(function):
        return None
    return Construct(
        _YIELD, os.path.basename(function.__code__.co_filename), line_of(function, "YIELD")
    )


def line_of(function: Any, opcode: str) -> int:
    """Return the line of the first instruction of a kind in a Python function; 0 if it has none."""
    code = function.__code__
    offsets = {x.offset for x in get_instructions(code) if x.opname.startswith(opcode)}
    lines = (line for start, end, line in code.co_lines() if offsets & {*range(start, end)})
    return next(filter(None, lines), 0)


@contextmanager
def marking_constructs() -> Iterator[None]:
    """Let ``print`` and blocks of ``objmode`` leave marks, and constants tell who uses them."""
    names = ("lower_print", "_lower_call_ObjModeDispatcher", "lower_assign")
    originals = {name: Lower.__dict__[name] for name in names}

    def lower_print(self: Any, inst: Any) -> None:
        del inst
        _mark(self, _PRINT)

    def lower_block(self: Any, fnty: Any, expr: Any, signature: Any) -> Any:
        del fnty, expr
        _mark(self, _BLOCK)
        return self.context.get_constant_null(signature.return_type)

    def lower_assign(self: Any, ty: Any, inst: Any) -> Any:
        self.context.is_of_numba = _is_of_numba(self)
        return originals["lower_assign"](self, ty, inst)

    for name, own in zip(names, (lower_print, lower_block, lower_assign), strict=True):
        setattr(Lower, name, own)
    try:
        yield
    finally:
        for name, original in originals.items():
            setattr(Lower, name, original)


def _is_of_numba(lower: Any) -> bool:
    return str(lower.fndesc.modname or "").startswith(_OWN)


def _mark(lower: Any, why: str) -> None:
    """Call a function that nothing defines, whose name has the place of the instruction."""
    file = "" if _is_of_numba(lower) else os.path.basename(lower.loc.filename)
    name = "|".join((_PREFIX, quote(why), quote(file), str(lower.loc.line)))
    function = ir.FunctionType(ir.VoidType(), [])
    lower.builder.call(cgutils.get_or_insert_function(lower.builder.module, function, name), [])
