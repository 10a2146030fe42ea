"""Functions of a source or a header without declarations, and why others are left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from runtime.error import ExportError

from .c.parser import CSyntaxError
from .c.scope import Scope, parsed
from .c.text import Chunk, chunks_of, without_labels
from .c.tokens import RESERVED
from .c.types import Function, render
from .c_type import OWN_PREFIXES, PACKED, FunctionReader, check_frees
from .constants.variables import is_access
from .declaration import AUTO, Declaration, FunctionDeclaration

# A name before its parameters, also inside parentheses: T *(name)(void).
_HEAD = re.compile(r"([A-Za-z_~][\w:~]*)\s*(?:\)\s*)?\((?!\s*\*|\s*\w+\s*\)\s*\()", re.ASCII)
_BRACES = re.compile(r"\{.*\}", re.DOTALL)
_CPP_TYPE = re.compile(r"::|[&<]|->")
_INTERNAL = re.compile(
    r"(?<!\[)(?<!\[ )\b(static|__?inline(__)?|inline|const(expr|eval)|typedef|template)\b"
)
_ALIAS = re.compile(r"__attribute__\s*\(\(.*\b(alias|ifunc)(__)?\s*\(", re.DOTALL)  # no body
_LABEL = re.compile(r'\)\s*_*asm_*\s*\(\s*"([^"]*)"\s*\)')
_WARNED = re.compile(r"\(\(\s*(?:__)?(warning|error|unavailable)(?:__)?\s*\(")
# The body of a macro that names a function: #define mpz_init __gmpz_init
_RENAMED = re.compile(r"__\w+$", re.ASCII)
_NO_NAME = {*RESERVED, "decltype"}  # words before parentheses
_NEITHER = {*RESERVED, "main", "operator", "_Static_assert"}


class Found(NamedTuple):
    """The functions of a unit."""

    made: tuple[Declaration, ...]  # in the order of the unit
    left_out: dict[str, str]  # the other functions, each with the reason
    left_out_types: dict[str, str]  # the C declarations of the latter


def functions_defined(scope: Scope, module: str, changes: Mapping[str, Any]) -> Found:
    """Return the functions of external linkage that a source defines, and those left out.

    `changes` has functions to declare otherwise or to add; False leaves one out. `module` is the
    name for messages.
    """
    chunks = [
        chunk
        for chunk in scope.chunks
        if (chunk.is_definition or _ALIAS.search(chunk.text))
        and not chunk.is_system
        and not _INTERNAL.search(chunk.text)
        and not _is_kernel(chunk)
    ]
    labels = {_name_of(c): m[1] for c in scope.chunks if (m := _LABEL.search(c.text))}
    reader = _Reader(scope, module, changes)
    for chunk in chunks:
        reader.add(chunk, _cpp_reason(chunk, scope) or _label_reason(chunk, labels))
    return reader.result()


def functions_declared(
    scope: Scope,
    module: str,
    is_own: Callable[[Chunk], bool],
    changes: Mapping[str, Any],
    only: Sequence[str] = (),
) -> Found:
    """Return the functions that a header declares, and those left out, as `functions_defined` does.

    `is_own` returns True for a declaration that counts. `only` has the functions to read; by
    default all.
    """
    changes = {**dict.fromkeys(only, AUTO), **changes}
    reader = _Reader(scope, module, changes, is_called=True)
    names = ((body, name) for name, body in scope.macros.items() if name[0] != "_")
    reader.macros = {body: name for body, name in names if _RENAMED.match(body)}
    for chunk in () if only else scope.chunks:
        if is_own(chunk) and _may_declare(chunk):
            reader.add(chunk, _cpp_reason(chunk, scope) or _warned_reason(chunk))
    return reader.result()


def _may_declare(chunk: Chunk) -> bool:
    """Return True if a declaration of a header may be one of a function."""
    is_type = "{" in chunk.text and "(" not in chunk.text
    return not is_type and not re.search(r"\b(typedef|template)\b", chunk.text)


def _is_kernel(chunk: Chunk) -> bool:
    """Return True for CUDA's functions that run on the device alone."""
    words = set(re.findall(r"__attribute__\s*\(\((\w+)\)\)", chunk.text))
    return "global" in words or ("device" in words and "host" not in words)


def _cpp_reason(chunk: Chunk, scope: Scope) -> str:
    """Return why a function of C++ is left out; empty if it has C linkage."""
    if not scope.is_cpp or chunk.is_c or re.match(r'extern\s*"C"', chunk.text):
        return ""
    return f'extern "C" is missing: write extern "C" {" ".join(chunk.text.split())[:60]}'


def _warned_reason(chunk: Chunk) -> str:
    """Return why a function is left out whose calls compilers report; empty for others."""
    match = _WARNED.search(chunk.text)
    what = "compilers report each call of it, by its attribute"
    return f"{what} {match[1]!r}" if match else ""


def _label_reason(chunk: Chunk, labels: Mapping[str, str]) -> str:
    """Return why a function is left out whose symbol has another name, by `labels`."""
    name = _name_of(chunk) if labels else ""
    if (label := labels.get(name, name)) == name:
        return ""
    return f"its symbol is {label!r}, expected {name!r}; declare it without __asm__"


def names_defined(code: str) -> set[str]:
    """Return the names of functions that code defines, as far as it shows without preprocessing."""
    return {_name_of(chunk) for chunk in chunks_of(code) if chunk.is_definition}


def _name_of(chunk: Chunk) -> str:
    """Return the name before the first parameters of a declaration; empty if there is none."""
    heads = _HEAD.finditer(_BRACES.sub(" ", without_labels(chunk.text)))
    return next((head[1] for head in heads if head[1] not in _NO_NAME), "")


class _Reader:
    """The reader of all functions of a unit; `is_called` if the unit calls what others define."""

    def __init__(
        self, scope: Scope, module: str, changes: Mapping[str, Any], is_called: bool = False
    ) -> None:
        self.scope = scope
        self.module = module
        self.changes = changes
        self.is_called = is_called
        self.made: dict[str, Declaration] = {}
        self.left_out: dict[str, str] = {}
        self.types: dict[str, str] = {}
        self.macros: dict[str, str] = {}  # the name that a header gives to a reserved one

    def add(self, chunk: Chunk, reason: str = "") -> None:
        """Add the functions of one declaration, or leave them out for a reason."""
        if chunk.is_old_style:
            name = _name_of(chunk)
            types = f"types inside the parentheses, as in 'int {name}(int a)'"
            reason = f"an old-style definition, expected {types}; rewrite it so"
            self.leave_out(name, chunk.text, reason)
            return
        try:
            found = parsed(chunk)
        except CSyntaxError as error:
            self.leave_out(_name_of(chunk), chunk.text, reason or self.unreadable(chunk, error))
            return
        for declared in found:
            function = self.scope.resolved(declared.type)
            name = self.macros.get(declared.name, declared.name)
            if isinstance(function, Function) and self.is_new(name):
                self.add_function(name, function, reason, declared.name)

    def is_new(self, name: str) -> bool:
        """Return True for the name of a function that may be exported and is not yet."""
        is_name = bool(name) and name not in _NEITHER and not name.startswith(OWN_PREFIXES)
        return is_name and name not in self.made and name not in self.changes

    def leave_out(self, name: str, declaration: str, reason: str) -> None:
        """Report why a function is not exported, unless another declaration of it is."""
        if self.is_new(name):
            self.left_out[name] = reason
            self.types[name] = declaration.rstrip("; ")

    def unreadable(self, chunk: Chunk, error: CSyntaxError) -> str:
        """Return why a declaration cannot be read."""
        if self.scope.is_cpp and _CPP_TYPE.search(chunk.text):
            return "its type is of C++, expected numbers, text and pointers to structs, as in C"
        return f"cannot be read as C{f': {error}' if str(error) else ''}"

    def add_function(self, name: str, function: Function, reason: str, symbol: str) -> None:
        """Add one function, unless there is a reason against it, or it cannot be exported."""
        if reason:
            self.leave_out(name, render(function, name), reason)
            return
        try:
            reader = FunctionReader(self.module, name, None, self.scope)
            whole = FunctionDeclaration(symbol=symbol if self.is_called else "")
            self.made[name] = reader.found(whole, function)
            self.left_out.pop(name, None)
        except ExportError as error:
            prefix = f"{self.module}: function {name!r}: "
            self.leave_out(name, render(function, name), error.message.removeprefix(prefix))

    def add_changed(self, name: str) -> None:
        """Add a function that the user declares, or one that is found with the user's options."""
        given = self.changes[name]
        if given is False:
            return
        reader = FunctionReader(self.module, name, None, self.scope)
        symbol = next((own for own, other in self.macros.items() if other == name), name)
        self.made[name] = reader.declaration(given, symbol=symbol if self.is_called else "")

    def result(self) -> Found:
        for name in self.changes:
            self.add_changed(name)
        made = tuple(self.made.values())
        check_frees(made, self.module)
        types = {name: self.types[name] for name in self.left_out}
        return Found(made, self.left_out, types)


def table_lines(declarations: Iterable[Declaration]) -> list[str]:
    """Write declarations as the lines of a table of packer.toml."""
    return [f"{d.name} = {_table_value(d)}" for d in declarations if not is_access(d.name)]


def _table_value(declaration: Declaration) -> str:
    if declaration.abi == "packed_c":
        return f'"{PACKED}"'
    text = f'"{declaration.text}"'
    if not declaration.out:
        return text
    names = ", ".join(f'"{name}"' for name in declaration.out)
    return f"{{ declaration = {text}, out = [{names}] }}"
