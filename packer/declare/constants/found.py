"""The constants of a unit: the names of its enums, and its macros that are constant expressions."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from typing import NamedTuple, Protocol

from runtime.constants import Enum
from runtime.error import ExportError

from ...files.arguments import list_of
from ..c.expression import (
    Names,
    NotConstantError,
    Number,
    Text,
    UncomputedError,
    Value,
    integer,
    value_of,
)
from ..c.scope import Scope
from ..c.types import Array, CType, Declared, Function, Pointer, Tagged
from .macros import Expansion, ExpansionError, Macro, macros_of

_STATEMENT = re.compile(r"^[^\"']*[{;]")  # no expression has them, but text may
# Names that C reserves for compilers and their libraries: not a macro or variable of a user.
RESERVED = re.compile(r"_[A-Z_]")
_BODY = re.compile(r"\benum\b[^;{}]*\{")
_SCOPED = re.compile(r"\benum\s+(class|struct)\b")  # C++: their names need the scope


class Place(Protocol):
    """Where a declaration or a macro is."""

    @property
    def file(self) -> str: ...
    @property
    def is_system(self) -> bool: ...


class _File(NamedTuple):
    """A file, as the place of what it declares."""

    file: str
    is_system: bool


IsOwn = Callable[[Place], bool]


class Constants(NamedTuple):
    """The constants of a unit, in the order of their definitions."""

    values: Mapping[str, Value] = {}
    enums: tuple[Enum, ...] = ()
    left_out: Mapping[str, str] = {}  # those whose value only the compiler knows, with the reason


def chosen(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that tells whether a name is exported; `patterns` as users write them.

    Raises ExportError if one is empty.
    """
    given = list_of(patterns, "constants")
    if "" in given or "!" in given:
        raise ExportError("constants: an empty pattern, expected 'SIZE_*' or '!SIZE_*'")
    refused = [pattern[1:] for pattern in given if pattern[0] == "!"]
    taken = [pattern for pattern in given if pattern[0] != "!"] or ["*"]

    def is_taken(name: str) -> bool:
        return any(fnmatchcase(name, p) for p in taken) and not any(
            fnmatchcase(name, p) for p in refused
        )

    return is_taken


def constants_of(scope: Scope, is_own: IsOwn, is_taken: Callable[[str], bool]) -> Constants:
    """Compute the constants of a unit, whose preprocessed text has its macros (``-dD``).

    `is_own` returns True for a declaration or macro that counts, `is_taken` for a name that does.
    """
    reader = _Reader(scope, macros_of(scope.text))
    is_own_file = cache(lambda file, is_system: is_own(_File(file, is_system)))
    for index, chunk in enumerate(scope.chunks):
        is_enum = (
            "enum" in chunk.text and _BODY.search(chunk.text) and not _SCOPED.search(chunk.text)
        )
        if is_enum and chunk.is_global and is_own_file(chunk.file, chunk.is_system):
            for enum in _enums(scope.declared(index)):
                reader.add_enum(enum, is_taken)
    for macro in reader.macros.values():
        is_of_own = is_own_file(macro.file, macro.is_system)
        if is_of_own and _may_be_constant(macro) and is_taken(macro.name):
            reader.add_macro(macro)
    return Constants(reader.values, tuple(reader.enums), reader.left_out)


def _may_be_constant(macro: Macro) -> bool:
    """Return True for a macro of a file that has a value, and not the name of a compiler's."""
    is_of_file = bool(macro.file) and macro.file[0] != "<"  # <built-in>, <command-line>
    is_value = macro.parameters is None and bool(macro.body)
    is_other = RESERVED.match(macro.name) or _STATEMENT.match(macro.body)
    return is_of_file and is_value and not is_other


def without(constants: Constants, names: Collection[str]) -> Constants:
    """Return the constants but for some names."""
    values = {name: value for name, value in constants.values.items() if name not in names}
    enums = [
        Enum(e.name, {n: v for n, v in e.members.items() if n not in names})
        for e in constants.enums
    ]
    return Constants(values, tuple(e for e in enums if e.members), constants.left_out)


class _Reader:
    def __init__(self, scope: Scope, macros: Mapping[str, Macro]) -> None:
        self.scope, self.macros = scope, macros
        self.known: dict[str, Number] = {}  # the names of the enums
        self.values: dict[str, Value] = {}
        self.enums: list[Enum] = []
        self.left_out: dict[str, str] = {}

    def add_enum(self, enum: Tagged, is_taken: Callable[[str], bool]) -> None:
        """Compute the names of one enum; each without a value is one more than the name before."""
        value: Number | None = Number("i32", -1)
        found: dict[str, int] = {}
        for name, tokens in enum.constants:
            try:
                value = self.integer(tokens) if tokens else self.following(value)
            except NotConstantError as error:
                value = None
                if is_taken(name):
                    self.left_out[name] = _reason(error)
                continue
            self.known[name] = value
            macro = self.macros.get(name)
            is_plain = macro is None or macro.body.strip() == name  # else the macro is the constant
            if is_plain and is_taken(name) and value.value is not None:
                found[name] = int(value.value)
        self.values.update({name: self.known[name] for name in found})
        if found and enum.name:
            self.enums.append(Enum(enum.name, found))

    def value(self, tokens: Sequence[str], names: Names) -> Value:
        return value_of(tokens, names, self.scope.type_code, is_cpp=self.scope.is_cpp)

    def integer(self, tokens: tuple[str, ...]) -> Number:
        found = self.value(tokens, self.named)
        if isinstance(found, Text) or not isinstance(found.value, int):
            raise NotConstantError("not an integer")
        return integer(found.value)

    def following(self, before: Number | None) -> Number:
        if before is None or before.value is None:
            raise UncomputedError("the name before it")
        return integer(int(before.value) + 1)

    def add_macro(self, macro: Macro) -> None:
        """Compute a macro; one that is not a constant expression is skipped."""
        try:
            tokens = Expansion(self.macros).expanded(macro.tokens, frozenset([macro.name]))
            value = self.value(tokens, self.named)
        except (UncomputedError, ExpansionError) as error:
            self.left_out[macro.name] = _reason(error)
        except RecursionError:
            self.left_out[macro.name] = _reason(UncomputedError("a deep expression"))
        except NotConstantError:
            return
        else:
            self.values[macro.name] = value

    def named(self, name: str) -> Number | None:
        if self.scope.is_cpp and name in ("true", "false"):
            return Number("i32", int(name == "true"))
        if name in self.known:
            return self.known[name]
        value = self.scope.constant(name)  # of a header of the system
        return None if value is None else integer(value)


def _reason(error: Exception) -> str:
    return f"its value depends on {error}, expected numbers and text; define a variable of it"


def _enums(found: Sequence[Declared]) -> Iterator[Tagged]:
    """Yield the enums with names that a declaration contains; a typedef names the outermost."""
    seen: list[Tagged] = []
    for declared in found:
        alias = declared.name if "typedef" in declared.storage else ""
        for enum in _inside(declared.type, alias):
            if enum.constants not in [other.constants for other in seen]:
                seen.append(enum)
                yield enum


def _inside(type_: CType, alias: str = "") -> Iterator[Tagged]:
    if isinstance(type_, Tagged):
        if type_.constants:
            yield type_ if type_.tag else type_._replace(alias=alias)
        for member in type_.members or ():
            yield from _inside(member.type)
    elif isinstance(type_, Function):
        yield from _inside(type_.result)
    elif isinstance(type_, Pointer):
        yield from _inside(type_.target)
    elif isinstance(type_, Array):
        yield from _inside(type_.item)
