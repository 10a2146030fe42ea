"""The names of an LLVM module: hidden entries, and everything else internal."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from llvmlite.binding import Linkage, parse_assembly

UNRESOLVED = ".numba.unresolved$"


def resolve(module: Any, libraries: Mapping[str, Any]) -> None:
    """Define the addresses by which recursive functions call each other.

    Parameters
    ----------
    module : llvmlite.binding.ModuleRef
        The module, which is changed.
    libraries : mapping of str to CodeLibrary
        The code of functions by their names. The module lacks a function if all calls from other
        functions were inlined.
    """
    while missing := [name for name in _unresolved(module) if name not in _defined(module)]:
        if not (found := [name for name in missing if name in libraries]):
            break
        module.link_in(libraries[found[0]]._final_module, preserve=True)
    defined = _defined(module)
    for name in _unresolved(module):
        if name not in defined:
            continue
        variable = module.get_global_variable(UNRESOLVED + name)
        text = f'@"{variable.name}" = constant ptr @"{name}"\ndeclare void @"{name}"()\n'
        module.link_in(parse_assembly(text))


def _defined(module: Any) -> set[str]:
    return {function.name for function in module.functions if not function.is_declaration}


def _unresolved(module: Any) -> list[str]:
    """Return the names of the functions of which only the address is declared."""
    names = [variable.name for variable in module.global_variables if variable.is_declaration]
    return [name.removeprefix(UNRESOLVED) for name in names if name.startswith(UNRESOLVED)]


def make_internal(module: Any, entries: Mapping[str, str], prefix: str = "") -> None:
    """Give the entries their symbols, and make every other definition internal.

    Parameters
    ----------
    module : llvmlite.binding.ModuleRef
        The module, which is changed.
    entries : mapping of str to str
        Functions by their names, and the symbol of each.
    prefix : str
        The beginning of the names of the others, which Numba makes of addresses and counters; empty
        to keep them.
    """
    numbers = count()
    for function in list(module.functions):
        if function.is_declaration:
            continue
        if symbol := entries.get(function.name):
            function.linkage, function.visibility = Linkage.external, "hidden"
            function.name = symbol
            continue
        function.visibility, function.linkage = "default", Linkage.internal
        if prefix:
            function.name = f"{prefix}function_{next(numbers)}"
    for variable in list(module.global_variables):
        if variable.is_declaration:
            continue
        if variable.linkage != Linkage.private:
            variable.linkage = Linkage.internal
        if prefix:
            variable.name = f"{prefix}data_{next(numbers)}"
