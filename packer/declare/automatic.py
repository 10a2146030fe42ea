"""Functions without declarations: those of a source or a header, and why others are left out."""

from __future__ import annotations

import re
from collections.abc import Callable

from runtime.error import ExportError

from .c.numbers import number_code
from .c.parser import CSyntaxError, parse_declaration
from .c.scope import Scope
from .c.text import Chunk, without_labels
from .c.types import CType, Declared, Function, Named, Pointer, Tagged
from .c_type import FunctionReader, check_frees
from .declaration import Declaration, FunctionDeclaration

_HEAD = re.compile(r"([A-Za-z_~][\w:~]*)\s*\(", re.ASCII)
_INTERNAL = re.compile(r"\b(static|__?inline(__)?|inline|typedef|template)\b")
_NEITHER = {
    "if",
    "while",
    "for",
    "switch",
    "return",
    "sizeof",
    "main",
    "operator",
    "_Static_assert",
}
_VALUES = ("TVMValue", "void *")
_PACKED = (_VALUES, ("int *",), ("int",), _VALUES, ("int *",), ("void *",))


def functions_defined(scope: Scope, module: str) -> tuple[tuple[Declaration, ...], dict[str, str]]:
    """Return the functions of external linkage that a source defines, and those left out.

    Parameters
    ----------
    scope : Scope
        The source.
    module : str
        The module, for messages.

    Returns
    -------
    declarations : tuple of Declaration
        In the order of the source.
    left_out : dict of str to str
        The other functions, each with the reason.
    """
    chunks = [
        chunk
        for chunk in scope.chunks
        if chunk.is_definition and not chunk.is_system and not _INTERNAL.search(chunk.text)
    ]
    reader = _Reader(scope, module, lambda name: FunctionDeclaration())
    for chunk in chunks:
        is_c = not scope.is_cpp or chunk.is_c or re.match(r'extern\s*"C"', chunk.text)
        reader.add(chunk, "" if is_c else _missing_extern(chunk))
    return reader.result()


def functions_declared(
    scope: Scope,
    module: str,
    is_own: Callable[[Chunk], bool],
) -> tuple[tuple[Declaration, ...], dict[str, str]]:
    """Return the functions that a header declares, and those left out, as `functions_defined` does.

    Parameters
    ----------
    is_own : callable
        Returns True for a declaration that counts.
    """
    reader = _Reader(scope, module, lambda name: FunctionDeclaration(symbol=name))
    for chunk in scope.chunks:
        if is_own(chunk) and not re.search(r"\b(typedef|template)\b", chunk.text):
            reader.add(chunk)
    return reader.result()


def _missing_extern(chunk: Chunk) -> str:
    return f'extern "C" is missing: write extern "C" {" ".join(chunk.text.split())[:60]}'


class _Reader:
    def __init__(
        self, scope: Scope, module: str, options: Callable[[str], FunctionDeclaration]
    ) -> None:
        self.scope = scope
        self.module = module
        self.options = options
        self.made: dict[str, Declaration] = {}
        self.left_out: dict[str, str] = {}

    def add(self, chunk: Chunk, reason: str = "") -> None:
        """Add the functions of one declaration."""
        head = _HEAD.search(without_labels(chunk.text))
        name = head[1] if head else ""
        if not name or name in _NEITHER or name in self.made:
            return
        if reason:
            self.left_out[name] = reason
            return
        try:
            found = parse_declaration(re.sub(r'^extern\s*"C"\s*', "extern ", chunk.text))
        except CSyntaxError as error:
            self.left_out[name] = f"cannot be read as C{f': {error}' if str(error) else ''}"
            return
        for declared in found:
            if isinstance(declared.type, Function) and declared.name not in self.made:
                self.add_function(declared, declared.type)

    def add_function(self, declared: Declared, function: Function) -> None:
        name = declared.name
        try:
            reader = FunctionReader(self.module, name, None, self.scope)
            if is_packed(function):
                self.made[name] = reader.packed()
            else:
                options = self.options(name)._replace(out=_results(function, self.scope))
                self.made[name] = reader.typed(options, function)
            self.left_out.pop(name, None)
        except ExportError as error:
            prefix = f"{self.module}: function {name!r}: "
            self.left_out[name] = error.message.removeprefix(prefix)

    def result(self) -> tuple[tuple[Declaration, ...], dict[str, str]]:
        made = tuple(self.made.values())
        check_frees(made, self.module)
        return made, self.left_out


def _results(function: Function, scope: Scope) -> tuple[str, ...]:
    """Return the parameters that can only be results: pointers to handles."""
    return tuple(
        declared.name
        for declared in function.parameters
        if declared.name and _is_handle_result(declared.type, scope)
    )


def _is_handle_result(type_: CType, scope: Scope) -> bool:
    found = scope.resolved(type_)
    target = scope.resolved(found.target) if isinstance(found, Pointer) else None
    if not isinstance(target, Pointer) or "const" in target.quals:
        return False
    last = scope.resolved(target.target)
    return isinstance(last, Tagged) and last.kind != "enum"


def is_packed(function: Function) -> bool:
    """Return True for the prototype of TVM's packed C functions."""
    if len(function.parameters) != len(_PACKED) or not _is_int(function.result):
        return False
    texts = [_packed_word(p.type) for p in function.parameters]
    is_named = "TVMValue" in texts or "type" in function.parameters[1].name
    return is_named and all(t in known for t, known in zip(texts, _PACKED, strict=True))


def _packed_word(type_: CType) -> str:
    """Return what a parameter is in the terms of packed functions; empty for any other type."""
    if _is_int(type_):
        return "int"
    target = type_.target if isinstance(type_, Pointer) else getattr(type_, "item", None)
    if not isinstance(target, Named):
        return ""
    if target.words == ("TVMValue",):
        return "TVMValue"
    if target.words == ("void",):
        return "void *"
    return "int *" if _is_int(target) else ""


def _is_int(type_: CType) -> bool:
    if not isinstance(type_, Named):
        return False
    return number_code(type_.words) == "i32" or type_.words == ("int32_t",)
