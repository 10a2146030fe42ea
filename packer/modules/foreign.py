"""Functions of libraries that others made: called by their addresses, through a small library."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

from runtime.error import ExportError

from ..declare.c.check import CALL_PREFIX
from ..declare.c.scope import KNOWN, Scope
from ..declare.c.tokens import STANDARD
from ..declare.c_type import parse_functions
from ..declare.options import function_declaration
from .c_source import CSourceModule
from .host import load_exported

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from runtime.module import Module

    from ..declare.declaration import FunctionDeclaration

_BIND = "packer_bind"
_SOURCE = """
#include <stdint.h>
static void *packer_addresses[{count}];
void packer_bind(int32_t index, uint64_t address) {{
  packer_addresses[index] = (void *)(uintptr_t)address;
}}
"""
_POINTED = re.compile(r"(?<!struct )(?<!union )(?<!enum )\b([A-Za-z_]\w*)\s*\*")


def wrap_functions(
    functions: Mapping[str, Any], address_of: Callable[[str], int], path: str
) -> Module:
    """Compile and load a library that calls C functions of another library, the one at `path`.

    `functions` is as for `CSourceModule`; `address_of` returns the address of a C function. The
    other library has to stay open as long as the result is used.
    """
    caller = _Caller(functions, path)
    addresses = [address_of(symbol) for symbol in caller.symbols]
    loaded = load_exported(caller)
    for index, address in enumerate(addresses):
        loaded[_BIND](index, address)
    return loaded


class _Caller(CSourceModule):
    """The C source of a library that calls functions by their addresses.

    `symbols` has their names in the other library.
    """

    def __init__(self, functions: Mapping[str, Any], path: str) -> None:
        self._path = path
        given = {n: function_declaration(f, self._refuse(n)) for n, f in functions.items()}
        frees = sorted({whole.free for whole in given.values()} - {"", "free", *given})
        self.symbols = [*(whole.symbol or name for name, whole in given.items()), *frees]
        called: dict[str, str | FunctionDeclaration] = {
            name: whole._replace(symbol=f"packer_target_{index}")
            for index, (name, whole) in enumerate(given.items())
        }
        called[_BIND] = "void(int32_t index, uint64_t address)"
        types = list(_types(whole.declaration for whole in given.values()))
        super().__init__("\n".join([_source(list(given), frees), *types]))
        scope = Scope(lambda: "\n".join(types))
        self.functions = parse_functions(called, module=repr(self), scope=scope)

    def _refuse(self, name: str) -> Callable[[str], NoReturn]:
        def refuse(what: str) -> NoReturn:
            raise ExportError(f"{self!r}: function {name!r}: {what}", module=self.type_key)

        return refuse

    def __repr__(self) -> str:
        return f"{self._path}: functions"


def _types(texts: Iterable[str]) -> Iterator[str]:
    """Yield the types that only pointers name: incomplete structs, so the pointers are handles."""
    for name in sorted({*_POINTED.findall(" ".join(texts))} - {*KNOWN, *STANDARD}):
        yield f"typedef struct {name} {name};"


def _source(names: list[str], frees: list[str]) -> str:
    """Return C text with a macro for each function; it has the type of what packer calls.

    Functions that release text, and are not declared, are defined.
    """
    macros = [
        f"#define packer_target_{i} ((__typeof__(&{CALL_PREFIX}{name}))packer_addresses[{i}])"
        for i, name in enumerate(names)
    ]
    released = [
        f"void {name}(void *text) {{ ((void (*)(void *))packer_addresses[{i}])(text); }}"
        for i, name in enumerate(frees, len(names))
    ]
    return "\n".join([_SOURCE.format(count=len(names) + len(frees)), *macros, *released])
