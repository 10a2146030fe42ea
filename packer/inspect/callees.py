"""The functions that graphs and bytecode call by name, and that no module of the library has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from runtime._core import built_in_names, vm_builtin_names
from runtime.module import preorder
from runtime.modules.graph_executor import GraphExecutorFactory
from runtime.modules.vm import VMExecutable

if TYPE_CHECKING:
    from runtime.module import Module

    from . import LibraryReport

BYTECODE, GRAPH = "functions of the bytecode", "operators of the graph"


def missing_callees(report: LibraryReport, root: Module) -> Iterator[tuple[str, list[str]]]:
    """Yield, for each model, what it calls and the names that nothing provides, sorted."""
    provided = {function.name for function in report.functions} | set(built_in_names())
    for module in preorder(root):
        what, called = _calls_of(module)
        if what:
            below = {name for part in preorder(module) for name in part.function_names()}
            yield what, sorted(called - below - provided)


def _calls_of(module: Module) -> tuple[str, frozenset[str]]:
    """Return the name of a check, and the functions that the module calls; "" if it calls none."""
    if isinstance(module, VMExecutable):
        return BYTECODE, module.own_callees - set(vm_builtin_names())
    if isinstance(module, GraphExecutorFactory):
        return GRAPH, module.own_callees
    return "", frozenset()
