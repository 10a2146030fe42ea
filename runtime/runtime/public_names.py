"""Import the public names of a package on first use; its ``__init__.pyi`` is their one list.

Type checkers and editors read that file as it is. At run time each of its lines ``from .home
import name as public`` says which module defines a public name; a name that begins with ``_`` is
for type checkers only, and the package binds it itself.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def import_public(package: str, public: str) -> Any:
    """Import a public name of a package, or ``"__all__"``, for the package's ``__getattr__``.

    The package keeps the name. Raises AttributeError if it has no such name.
    """
    module = sys.modules[package]
    homes = _homes(module)
    if public == "__all__":
        return sorted(homes)
    if public not in homes:
        text = f"module {package!r} has no attribute {public!r}"
        raise AttributeError(text, name=public, obj=module)
    home, name = homes[public]
    parent = _import(f"{package}{home}".rstrip(".") if home[0] == "." else home)
    defined = vars(parent)
    value = defined[name] if name in defined else _import(f"{parent.__name__}.{name}")
    setattr(module, public, value)
    return value


def _import(name: str) -> Any:
    """Import a module; importlib itself would take longer than most of them."""
    __import__(name)
    return sys.modules[name]


def _homes(module: Any) -> dict[str, tuple[str, str]]:
    """Map each public name to its home and to its name there."""
    stub = module.__loader__.get_data(f"{module.__path__[0]}/__init__.pyi").decode()
    words = [line.split() for line in stub.splitlines() if line.startswith("from ")]
    return {line[5]: (line[1], line[3]) for line in words if line[5][0] != "_"}
