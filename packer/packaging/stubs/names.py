"""Names in a stub: of its functions, of what it imports, and of the classes that it defines."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterable, Iterator
from keyword import iskeyword

MOST_COLUMNS = 100

# The modules of what stubs import. Other names are builtins.
_HOMES = {
    **dict.fromkeys(("Callable", "Iterator", "KeysView", "Mapping"), "collections.abc"),
    **dict.fromkeys(("GraphExecutor", "Handle", "Module", "Tensor"), "runtime"),
    "Weights": "runtime.tensors.weights",
    "Constants": "runtime.constants",
    "Globals": "runtime.variables",
    "IntEnum": "enum",
    **dict.fromkeys(("Any", "Final", "Literal", "NamedTuple", "Never", "Protocol"), "typing"),
    **dict.fromkeys(("TypeAlias", "final", "overload", "type_check_only"), "typing"),
    **dict.fromkeys(("Array", "Bool", "Bytes", "Complex", "Float", "Function"), "runtime.typing"),
    **dict.fromkeys(("Int", "Record", "SupportsDLPack", "VoidHandle"), "runtime.typing"),
}


class Names:
    """Different identifiers for different texts; `taken` are in use."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)

    def add(self, text: str, other: str = "") -> str:
        """Return a free identifier: of the text, else of `other`, else with a number."""
        name = first = identifier(text)
        if other and name in self._taken:
            name = first = identifier(other)
        number = 2
        while name in self._taken:
            name = f"{first}_{number}"
            number += 1
        self._taken.add(name)
        return name


class Scope:
    """The names of one stub; the names of its `functions` are not changed."""

    def __init__(self, functions: Iterable[str]) -> None:
        self._names = Names(functions)
        self._imports: dict[str, str] = {}

    def use(self, name: str) -> str:
        """Return the local name of a builtin or of a name of `_HOMES`, which is then imported."""
        if name not in self._imports:
            self._imports[name] = self._names.add(name, f"_{name}")
        return self._imports[name]

    def public(self, text: str, other: str = "") -> str:
        """Return a new name for what users may name: of the text, or else of `other`."""
        while hasattr(builtins, text) or text in _HOMES:
            text += "_"
        return self._names.add(text, other)

    def private(self, text: str) -> str:
        """Return a new name that begins with ``_``."""
        return self._names.add(f"_{text}")

    def import_lines(self) -> Iterator[str]:
        """The import lines of all names that were used, sorted as ruff sorts them."""
        homes: dict[str, list[str]] = {}
        for name, local in self._imports.items():
            home = _HOMES.get(name, "builtins")
            if home != "builtins" or local != name:
                text = name if local == name else f"{name} as {local}"
                homes.setdefault(home, []).append(text)
        ours = sorted(home for home in homes if home.startswith("runtime"))
        for home in sorted(homes.keys() - ours):
            yield _import_line(home, sorted(homes[home]))
        yield ""
        for home in ours:
            yield _import_line(home, sorted(homes[home]))


def _import_line(home: str, names: list[str]) -> str:
    line = f"from {home} import {', '.join(names)}"
    if len(line) <= MOST_COLUMNS:
        return line
    return "\n".join([f"from {home} import (", *(f"    {name}," for name in names), ")"])


def identifier(text: str) -> str:
    """Return the text as an identifier of Python, with ``_`` for other characters."""
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    name = f"_{name}" if not name or name[0].isdigit() else name
    return f"{name}_" if iskeyword(name) else name


def quoted(text: str) -> str:
    """Return a literal of text, in the quotes that formatters prefer."""
    literal = ascii(text)
    return f'"{literal[1:-1]}"' if literal[0] == "'" and '"' not in literal else literal


def is_identifier(text: str) -> bool:
    """Return True if Python has no other meaning for this name."""
    return text.isidentifier() and not iskeyword(text)
