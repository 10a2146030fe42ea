"""The variables of a unit: functions that read and write each one, and its code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from runtime.error import ExportError
from runtime.variables import FORMATS, GET, SET, SIZE

from ..c.aggregate import aggregates_of
from ..c.code import Codes
from ..c.layout import LayoutError, extents_of
from ..c.numbers import UnsupportedError
from ..c.scope import Scope
from ..c.text import Chunk, without_labels
from ..c.types import Array, CType, Declared, Function, Named, Pointer
from ..c_type import FunctionReader
from ..declaration import Declaration, FunctionDeclaration
from .found import RESERVED

_ACCESS = (GET, SET, SIZE)
_VALUE = "packer_0"  # the parameter of a function that writes a variable
_OTHER = re.compile(
    r"$|(?:class|typedef|template|using|_?[sS]tatic_assert)\b|enum\s+(?:class|struct)\b"
)
_FUNCTION = re.compile(r"[^(=\[]*\w\s*\((?!\s*\*)")  # not int (*pointer)(int)
_TYPE = re.compile(r"(?:enum|struct|union)\b[^=]*")  # without a name after it
_ONLY_TAG = re.compile(r"\s*(struct|union|enum)\s+\w+\s*;?\s*", re.ASCII)
_BRACES = re.compile(r"\{[^{}]*\}")
_TEXT = re.compile(r'=\s*\{?\s*"')
_VOID = Named(("void",))
_SIZE_TYPE = Named(("size_t",))


class Variables(NamedTuple):
    """The variables of a unit."""

    codes: dict[str, str]  # a variable's code; of an array with its extents, & before a const one
    made: tuple[Declaration, ...]  # the functions that read and write them
    left_out: dict[str, str]  # the others, with the reason


def variables_of(
    scope: Scope,
    module: str,
    is_own: Callable[[Chunk], bool],
    is_taken: Callable[[str], bool],
    *,
    is_header: bool,
) -> Variables:
    """Find the variables that a source defines, or that a header (`is_header`) declares.

    `is_own` returns True for a declaration that counts, `is_taken` for a name that does.
    """
    found = Variables({}, (), {})
    made: dict[str, tuple[Declaration, ...]] = {}
    for index, chunk in enumerate(scope.chunks):
        if not _may_declare(chunk, scope) or not is_own(chunk):
            continue
        for declared in _declared(index, scope, is_header):
            name = declared.name
            if not is_taken(name) or name in found.codes or RESERVED.match(name):
                continue
            try:
                reader = _Reader(scope, module, name, chunk)
                found.codes[name], made[name] = reader.read(declared.type)
                found.left_out.pop(name, None)
            except (ExportError, UnsupportedError) as error:
                found.left_out[name] = (
                    f"a variable: {_reason(error)}; write a function that reads it"
                )
    return found._replace(made=tuple(d for functions in made.values() for d in functions))


def is_access(name: str) -> bool:
    """Return True for the name of a function that reads or writes a variable."""
    return name.startswith(_ACCESS)


def variable_of(name: str) -> str:
    """Return the variable that such a function reads or writes; any other name as it is."""
    prefix = next((prefix for prefix in _ACCESS if name.startswith(prefix)), "")
    return name.removeprefix(prefix)


def _reason(error: Exception) -> str:
    text = error.message if isinstance(error, ExportError) else str(error)
    return re.sub(r"^.*?function '_packer_\w+': (parameter 1 '\w+': |result: )?", "", text)


def _may_declare(chunk: Chunk, scope: Scope) -> bool:
    text = chunk.text
    if chunk.is_definition or _OTHER.match(text) or _FUNCTION.match(without_labels(text)):
        return False
    is_type = text.endswith("}") and _TYPE.fullmatch(_without_braces(without_labels(text)))
    return not is_type and (not scope.is_cpp or _is_c(chunk) or chunk.is_global)


def _without_braces(text: str) -> str:
    """Drop what is in braces."""
    count = 1
    while count:
        text, count = _BRACES.subn("", text)
    return text


def _is_c(chunk: Chunk) -> bool:
    return chunk.is_c or bool(re.match(r'extern\s*"C"', chunk.text))


def _declared(index: int, scope: Scope, is_header: bool) -> Iterator[Declared]:
    """Yield the variables of a declaration that another file could use, or that are const."""
    chunk = scope.chunks[index]
    if _ONLY_TAG.fullmatch(chunk.text):
        return
    for declared in scope.declared(index):
        type_ = scope.resolved(declared.type)
        is_variable = declared.name and not isinstance(type_, Function)
        words = declared.storage
        is_extern = "extern" in words and "=" not in chunk.text and not is_header
        is_hidden = "static" in words and not _is_const(type_, scope)
        if is_variable and not {"typedef", "register"} & words and not (is_extern or is_hidden):
            yield declared


def _is_const(type_: CType, scope: Scope) -> bool:
    """Return True if a variable of a type, or each item of an array, is const."""
    found = scope.resolved(type_)
    if isinstance(found, Array):
        return _is_const(found.item, scope)
    return "const" in getattr(found, "quals", ())


class _Reader:
    """Makes the functions of one variable."""

    def __init__(self, scope: Scope, module: str, name: str, chunk: Chunk) -> None:
        self.scope, self.module, self.name, self.chunk = scope, module, name, chunk
        self.is_constexpr = bool(re.search(r"\bconstexpr\b", chunk.text))

    def read(self, written: CType) -> tuple[str, tuple[Declaration, ...]]:
        """Return the code of the variable, and its functions. Raises if it has none."""
        type_ = self.scope.resolved(written)
        if isinstance(type_, Array):
            return self.array(type_)
        plain = written
        if not isinstance(plain, Array | Function):
            plain = plain._replace(quals=())
        is_const = self.is_constexpr or _is_const(type_, self.scope)
        if not is_const and isinstance(type_, Pointer):
            return self.in_place(type_, is_const)
        try:
            code = Codes(self.scope).result(plain)
        except UnsupportedError:
            return self.in_place(type_, is_const)
        if code[0] == "=":
            return self.in_place(type_, is_const)
        self.check(code)
        get = self.function(GET, Function(plain, ()), self.name)
        if is_const:
            return code, (get,)
        value = Function(_VOID, (Declared("value", plain),))
        return code, (get, self.function(SET, value, f"{self.name} = {_VALUE}"))

    def array(self, type_: Array) -> tuple[str, tuple[Declaration, ...]]:
        """Return what `read` does, of an array: of text if a string is its value."""
        extents, item = extents_of(type_)
        found = self.scope.resolved(item)
        try:
            code = Codes(self.scope).value(found, item, "")
        except UnsupportedError:  # as of a pointer
            code = ""
        is_const = self.is_constexpr or _is_const(type_, self.scope)
        values = [self.scope.extent(extent) if extent else None for extent in extents]
        is_text = bool(_TEXT.search(self.chunk.text)) or self.is_declared
        if code == "char" and is_const and extents == [()] and is_text:
            text = Function(Pointer(Named(("char",), ("const",))), ())
            return "str", (self.function(GET, text, self.name),)
        code = {"char": "u8"}.get(code, code)
        if None in values[1:] or (values[0] is None and (extents[0] or self.is_declared)):
            raise UnsupportedError("an array of unknown extent")
        has_size = values[0] is not None
        if code not in FORMATS:
            return self.in_place(type_, is_const, has_size)
        text_of_extents = "".join(f"[{'' if value is None else value}]" for value in values)
        return f"{'&' if is_const else '*'}{code}{text_of_extents}", self.address(has_size)

    def in_place(
        self, type_: CType, is_const: bool, has_size: bool = True
    ) -> tuple[str, tuple[Declaration, ...]]:
        """Return what `read` does, of a variable that is read as a member of a struct is."""
        self.check("@")
        try:
            code, aggregates = aggregates_of(self.scope).variable(type_, self.name)
        except LayoutError as error:
            raise UnsupportedError(str(error)) from None
        code = code if has_size else code.replace("[0]", "[]", 1)
        get, *others = self.address(has_size)
        conditions = tuple(text for a in aggregates for text in a.conditions)
        check = get.check._replace(conditions=(*get.check.conditions, *conditions))
        get = get._replace(aggregates=aggregates, check=check)
        return f"{'!' if is_const else ':'}{code}", (get, *others)

    def address(self, has_size: bool) -> tuple[Declaration, ...]:
        """Return the function for the address of the variable, and one for a size not known."""
        made = self.function(GET, Function(_SIZE_TYPE, ()), f"(__SIZE_TYPE__)&{self.name}")
        if has_size:
            return (made,)
        size = self.function(SIZE, Function(_SIZE_TYPE, ()), f"sizeof({self.name})")
        return made, size

    def check(self, code: str) -> None:
        """Refuse a value that may be an object of C++, which no C function can return."""
        if self.scope.is_cpp and code[0] in "{@" and not _is_c(self.chunk):
            raise UnsupportedError('a type of C++, expected numbers and text, or extern "C"')

    @property
    def is_declared(self) -> bool:
        """True without a value, which would tell the extent."""
        return "=" not in self.chunk.text

    def function(self, prefix: str, type_: Function, expression: str) -> Declaration:
        """Declare a function of the unit that evaluates an expression of C."""
        reader = FunctionReader(self.module, prefix + self.name, None, self.scope)
        made = reader.typed(FunctionDeclaration(symbol=self.name, gil="keep"), type_)
        return made._replace(check=made.check._replace(expression=expression))
