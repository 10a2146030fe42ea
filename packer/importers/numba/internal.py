"""The names of an LLVM module: hidden entries, and everything else internal."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from llvmlite.binding import Linkage, parse_assembly

UNRESOLVED = ".numba.unresolved$"


def resolve(module: Any) -> None:
    """Define the addresses by which recursive functions call each other."""
    defined = {function.name for function in module.functions if not function.is_declaration}
    for variable in list(module.global_variables):
        name = variable.name.removeprefix(UNRESOLVED)
        if not variable.is_declaration or name == variable.name or name not in defined:
            continue
        text = f'@"{variable.name}" = constant ptr @"{name}"\ndeclare void @"{name}"()\n'
        module.link_in(parse_assembly(text))


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
