"""The symbols that compiled code needs, and the Python line that needs one which is refused."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .blas import parts_of, why_missing
from .context import OBJECT, Context
from .internal import UNRESOLVED, make_internal, resolve
from .symbols import Refused, find
from .values import Value

if TYPE_CHECKING:
    from .code import Code

# Functions of the compiler's own library, which a link always adds.
_COMPILER = re.compile(r"__[a-z]+[dstx][cfi][234]?|__(divmod|udivmod)\w+|__\w+ti[34]")
_ALLOCATING = ("NRT_MemInfo_alloc", "NRT_MemInfo_new", "NRT_Allocate")
_LIBRARIES = ("libm.so.6", "libc.so.6")
_PICKLED = ".const.picklebuf"  # an exception of code that was not compiled for a library
_DEFINE = re.compile(r'^define [^@]*@("[^"]+"|[\w.$]+)\(')
_USE = re.compile(r'@("[^"]+"|[\w.$]+)')
_DEBUG = re.compile(r"!dbg (!\d+)")
_PLACE = re.compile(r"^(!\d+) = (?:distinct )?!DILocation\(line: (\d+)(.*)\)$", re.MULTILINE)
_OUTER = re.compile(r"inlinedAt: (!\d+)")


def needed_by(context: Context, code: Code) -> set[str]:
    """Return the symbols that the code of one signature needs."""
    generator = context.codegen()
    module = generator.empty_module("needs")
    module.link_in(code.module, preserve=True)
    resolve(module, context.libraries)
    make_internal(module, {code.name: "entry"})
    generator.remove_unused(module)
    pickled = {v.name for v in module.global_variables if v.name.startswith(_PICKLED)}
    return undefined_in(module) | pickled


def undefined_in(module: Any) -> set[str]:
    """Return the symbols that a module uses and does not define."""
    return {
        value.name
        for value in (*module.functions, *module.global_variables)
        if value.is_declaration and not value.name.startswith("llvm.")
    }


def allocates_memory(arguments: Collection[Value], names: Collection[str]) -> bool:
    """Return True if code that needs symbols may hold memory when it raises.

    Code that hands out the functions that allocate may keep memory for its next call.
    """
    if "NRT_get_api" in names:
        return False
    return any(name.startswith(_ALLOCATING) for name in names) or any(map(_has_text, arguments))


def _has_text(value: Value) -> bool:
    return value.kind == "str" or any(map(_has_text, value.items))


def why_refused(names: Collection[str], blas: Path | None = None) -> tuple[str, str] | None:
    """Return the first symbol that no library can have, and the reason; None if there is none."""
    for name in sorted(names):
        origin = find(name)
        if name.startswith(_PICKLED):
            return _PICKLED, "it calls code that this process had compiled for itself"
        if name == OBJECT:
            return name, "it uses a Python object as it is at run time"
        if isinstance(origin, Refused):
            return name, origin.why
        if name.startswith(UNRESOLVED):
            return name, "functions call each other in a circle, with types that change"
        if origin is None and not _is_of_system(name):
            return name, f"no library defines {name}"
    if (parts := parts_of(names)) and (why := why_missing(blas, parts)):
        return min(name for name in names if parts_of([name])), why
    return None


def _is_of_system(name: str) -> bool:
    if _COMPILER.fullmatch(name):
        return True
    return any(hasattr(ctypes.CDLL(library), name) for library in _LIBRARIES)


def line_in(text: str, entry: str, symbol: str) -> int:
    """Return the line of a function from which a symbol is reached; 0 if it is unknown.

    Parameters
    ----------
    text : str
        The LLVM module of the function, compiled with debug information.
    entry : str
        The function's name in it.
    symbol : str
        The symbol.
    """
    bodies = _bodies(text)
    reaching = {symbol}
    while new := {
        name
        for name, lines in bodies.items()
        if name not in reaching and any(_uses(line, reaching) for line in lines)
    }:
        reaching |= new
    places = {number: (int(line), rest) for number, line, rest in _PLACE.findall(text)}
    for line in bodies.get(entry, ()):
        if _uses(line, reaching - {entry}) and (found := _DEBUG.search(line)):
            return _outermost(found[1], places)
    return 0


def _bodies(text: str) -> dict[str, list[str]]:
    """Return the lines of each function of a module."""
    bodies: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if found := _DEFINE.match(line):
            lines = bodies[found[1].strip('"')] = []
        else:
            lines.append(line)
    return bodies


def _uses(line: str, names: Collection[str]) -> bool:
    return any(found.strip('"') in names for found in _USE.findall(line))


def _outermost(number: str, places: dict[str, tuple[int, str]]) -> int:
    """Return the line of the function itself, from a place in what was inlined."""
    line = 0
    while number in places:
        line, rest = places[number]
        outer = _OUTER.search(rest)
        number = outer[1] if outer else ""
    return line
