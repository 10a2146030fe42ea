"""The functions and weights that host code of a library finds in its tree, for the native core."""

from __future__ import annotations

from .error import FunctionNotFoundError, near_names
from .module import preorder
from .registry import find_global_func, near_functions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .library import LibraryModule
    from .module import Module
    from .tensors.tensor import Tensor


def find_weight(modules: list[LibraryModule], name: str) -> Tensor:
    """Find a named tensor for host code of a library, which borrows it from the library.

    `modules` are as in `find_import`; their own tensors precede their imports' tensors. Raises
    KeyError.
    """
    parts = [part for module in modules for part in preorder(module)]
    for part in parts:
        if name in (own := part.own_weights):
            return modules[0]._lent.setdefault((part, name), own[name])
    who = repr(modules[0]) if modules else "a library without a module"
    known = sorted({known for part in parts for known in part.own_weights})
    raise KeyError(
        f"{who}: its host code reads weight {name!r}, which no module of its tree has"
        + near_names(name, known)
    )


def find_import(modules: list[Module], name: str) -> tuple[object, Callable[..., Any]]:
    """Find a function that host code of a library calls by name; the native core caches it.

    `modules` are the modules of the library that are alive: usually one. Their imports are
    searched, depth first in import order, then the global functions. Returns the module that has
    the function, or the global function twice. Raises FunctionNotFoundError.
    """
    imports = [imported for module in modules for imported in list(preorder(module))[1:]]
    for imported in imports:
        if (function := imported.find_function(name)) is not None:
            return imported, function
    if (function := find_global_func(name)) is not None:
        return function, function
    who = repr(modules[0]) if modules else "a library without a module"
    hints = [hint for imported in imports if (hint := imported.how_to_declare(name))]
    known = [n for imported in imports for n in imported.function_names()]
    text = (
        f"{who}: its host code calls {name!r}, which is neither a function of its imports nor a "
        f"global function" + (hints[0] if hints else near_functions(name, known))
    )
    raise FunctionNotFoundError(text, name=name, module="library")
