"""Redeclarations: C text after the user's source, by which the compiler checks declarations."""

from __future__ import annotations

from collections.abc import Sequence

from runtime.error import ExportError

from .c_type import TYPEDEFS
from .declaration import Declaration, joined

# A redeclaration follows any source, so it needs no header: it uses the compiler's type macros.
_BUILTIN_TYPES = {name: f"__{name[:-2].upper()}_TYPE__" for name in TYPEDEFS if name[-2:] == "_t"}
_BOOL = {"c": "_Bool", "cc": "bool"}


def redeclarations(declarations: Sequence[Declaration], language: str) -> str:
    """Return the C or C++ text to append to a user's source; packed C functions are skipped.

    Raises
    ------
    ExportError
        If a name is not a C name.
    """
    lines = ["", "", '#line 1 "<function declarations>"']
    lines += ['extern "C" {'] if language == "cc" else []
    lines += [_redeclaration(d, language) for d in declarations if d.abi == "safe_call"]
    lines += ["}"] if language == "cc" else []
    return "\n".join(lines) + "\n"


def _redeclaration(declaration: Declaration, language: str) -> str:
    if "." in declaration.name:
        raise ExportError(f"function {declaration.name!r}: the name has a '.', expected a C name")
    types = [_portable(p.type_text, language) for p in declaration.parameters]
    head = joined(_portable(declaration.result_text, language), declaration.name)
    return f"extern {head}({', '.join(types) or 'void'});"


def _portable(type_text: str, language: str) -> str:
    words = {**_BUILTIN_TYPES, "bool": _BOOL[language], "_Bool": _BOOL[language]}
    words["dso_status"] = "int"
    return " ".join(words.get(word, word) for word in type_text.split())
