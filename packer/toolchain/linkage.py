"""Linkage: symbols that are undefined, and C++ names of functions that lack extern "C"."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from runtime.error import ToolchainError

# Errors of g++, clang++ and nvcc: extern "C" precedes only the second declaration of a function.
_CONFLICT = re.compile(
    r"conflicting declaration of .*?(?P<gcc>\w+)\(.* with .C. linkage"
    r"|declaration of .(?P<clang>\w+). has a different language linkage"
    r'|linkage specification is incompatible with previous "(?P<nvcc>\w+)"'
)
_PLACE = re.compile(r"^(?P<file>[^\s<].*?):\d+:\d+: note: previous", re.MULTILINE)

# How bfd, lld and gold report a protected symbol; glue.h makes functions protected.
_UNDEFINED = re.compile(
    r"(?:undefined (?:reference to|symbol:|protected symbol:)|protected symbol)\W+(\w+)"
)
# Functions that use one: bfd names a function before its symbols, gold beside, others after.
_USED = re.compile(
    r"function [`']?(?P<function>\w+)'?:|>>>.*:\((?P<user>\w+)\)$"
    r"|undefined (?:reference to|symbol:)\W+(?P<symbol>\w+)",
    re.MULTILINE,
)
# An error in the C text that confirms a declaration, as gcc and clang report it. gcc names the file
# of a macro that has the error, after a line with the function that uses the macro.
_REFUSED = re.compile(
    r"^<(?:declaration of|constant) ([\w$]+)>:\d+:\d+: error: (.*)$"
    r"|In function .__packer_call_([\w$]+).:\n[^<].*: error: (.*)$",
    re.MULTILINE,
)


def undefined_in(error: ToolchainError) -> set[str]:
    """Return the symbols that a linker reported as undefined."""
    return set(_UNDEFINED.findall(error.stderr))


def users_in(error: ToolchainError) -> dict[str, str]:
    """Return the functions that use an undefined symbol, each with the first one."""
    found: dict[str, str] = {}
    function = symbol = ""
    for match in _USED.finditer(error.stderr):
        function, symbol = match["function"] or function, match["symbol"] or symbol
        if match["user"] or match["symbol"]:
            found.setdefault(match["user"] or function, symbol)
    return found


def refused_in(error: ToolchainError) -> dict[str, str]:
    """Return the functions whose declaration a compiler refused, each with its first error."""
    found = reversed(_REFUSED.findall(error.stderr))
    return {name or user: text or in_macro for name, text, user, in_macro in found}


def conflicting(stderr: str) -> Iterator[tuple[str, str]]:
    """Yield the functions that a compiler found declared with two linkages, and their files."""
    for found in _CONFLICT.finditer(stderr):
        place = _PLACE.search(stderr, found.end())
        name = next(name for name in found.groups() if name)
        yield name, Path(place["file"]).name if place else ""


def mangled(names: Iterable[str], objects: Mapping[Path, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (name, name in C++, file) of functions that objects define with C++ linkage.

    `objects` are object files and archives, and what messages call their sources.
    """
    from .link_input import LinkInput  # only after an error

    defined = {
        symbol: shown
        for path, shown in objects.items()
        for found in LinkInput(path).objects
        for symbol in found.definitions
        if symbol.startswith("_Z")
    }
    for name in names:
        for symbol, shown in defined.items():
            if (scoped := _demangled(symbol, name)) is not None:
                yield name, scoped, shown
                break


def advice(name: str, scoped: str, shown: str) -> str:
    """Say how to give a function of C++ its C name."""
    place = f" in {shown}" if shown else ""
    text = f"{scoped} is defined with C++ linkage{place}"
    if scoped == name:
        return f'{text}: put extern "C" before its definition'
    return f'{text}: define a function {name} with extern "C" before it, which calls {scoped}'


def _demangled(symbol: str, name: str) -> str | None:
    """Return the C++ name of a symbol if it is a function `name` of any scope, else None.

    The Itanium C++ ABI writes _Z3addii, and _ZN5outer5inner3addEii in a namespace or class.
    """
    own = f"{len(name)}{name}"
    if symbol.startswith(f"_Z{own}"):
        return name
    if not symbol.startswith("_ZN") or f"{own}E" not in symbol:
        return None
    parts, rest = [], symbol.removeprefix("_ZN").lstrip("rVK")
    while length := re.match(r"[1-9]\d*", rest):
        start = length.end()
        parts.append(rest[start : start + int(length[0])])
        rest = rest[start + int(length[0]) :]
    return "::".join(parts) if rest.startswith("E") and parts[-1:] == [name] else None
