"""The classes of a stub for ``model.constants`` and ``model.globals``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from runtime.constants import ConstantsRecord, Value
from runtime.variables import FORMATS

from ...declare.declaration import SIGNED, UNSIGNED
from .names import MOST_COLUMNS, Scope, is_identifier, quoted

# Methods of the classes of runtime: a constant of such a name has no attribute.
_METHODS = {"get", "items", "keys", "values", "clear", "pop", "popitem", "setdefault", "update"}
_NUMBERS = {
    **dict.fromkeys((*SIGNED, *UNSIGNED), "int"),
    **dict.fromkeys((code for code in FORMATS if code[0] == "f"), "float"),
    "bool": "bool",
}
_MARKS = ("  # type: ignore[override]", "  # pyright: ignore[reportIncompatibleMethodOverride]")


def constants_class(record: ConstantsRecord, scope: Scope, name: str) -> Iterator[str]:
    """Yield the class of each enum, and the class `name` of the constants."""
    use = scope.use
    attributes: dict[str, str] = {}
    items: dict[str, list[str]] = {}
    for enum in record.enums:
        members = [member for member in enum.members if is_identifier(member)]
        made = scope.private(enum.name)
        rows = "".join(f"    {member} = {enum.members[member]}\n" for member in members)
        yield f"class {made}({use('IntEnum')}):\n{rows or '    ...'}".rstrip()
        attributes |= {enum.name: f"type[{made}]", **dict.fromkeys(members, made)}
        items.setdefault(f"{use('type')}[{use('IntEnum')}]", []).append(enum.name)
        items.setdefault(use("IntEnum"), []).extend(enum.members)
    for constant, value in record.values.items():
        attributes[constant] = _type_of(value, scope)
        items.setdefault(_type_of(value, scope), []).append(constant)
    lines = [f"    {n}: {use('Final')}[{t}]" for n, t in attributes.items() if _is_attribute(n)]
    yield "\n".join([_head(name, "Constants", scope), *lines, *_look_ups(_once(items), scope)])


def globals_class(record: ConstantsRecord, scope: Scope, name: str) -> str:
    """Return the class `name` of the variables."""
    types = {variable: _variable(code, scope) for variable, code in record.globals.items()}
    lines = [f"    {n}: {t}" for n, t in types.items() if _is_attribute(n)]
    return "\n".join([_head(name, "Globals", scope), *(lines or ["    ..."])])


def _head(name: str, base: str, scope: Scope) -> str:
    return f"@{scope.use('type_check_only')}\nclass {name}({scope.use(base)}):"


def _is_attribute(name: str) -> bool:
    return is_identifier(name) and name not in _METHODS and not name.startswith("__")


def _type_of(value: Value, scope: Scope) -> str:
    return scope.use(type(value).__name__)


def _variable(code: str, scope: Scope) -> str:
    if code[0] in ":!":
        is_handle = code[1] == "{" or code[-1] == "]"
        return scope.use("Handle" if is_handle else "Any")
    if "[" in code:
        return scope.use("memoryview")
    if code == "str":
        return f"{scope.use('str')} | None"
    return scope.use(_NUMBERS.get(code, "Any"))


def _once(items: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Drop names that another type already has: a look-up finds one value."""
    seen: set[str] = set()
    found: dict[str, list[str]] = {}
    for type_, names in reversed([*items.items()]):
        found[type_] = [n for n in dict.fromkeys(names) if n not in seen]
        seen.update(names)
    return {type_: names for type_, names in found.items() if names}


def _look_ups(items: Mapping[str, Sequence[str]], scope: Scope) -> Iterator[str]:
    """``constants[name]``: an overload for each type."""
    overload = f"    @{scope.use('overload')}" if len(items) > 1 else ""
    for index, (type_, names) in enumerate(items.items()):
        if overload:
            yield overload + (_MARKS[0] if index == 0 else "")
        is_last = index == len(items) - 1
        mark = "" if not is_last else _MARKS[1] if overload else _MARKS[0]
        yield _look_up(names, type_, scope, mark)


def _look_up(names: Sequence[str], type_: str, scope: Scope, mark: str) -> str:
    literal, shown = scope.use("Literal"), [quoted(name) for name in names]
    line = f"    def __getitem__(self, name: {literal}[{', '.join(shown)}], /) -> {type_}: ..."
    if len(line) <= MOST_COLUMNS:
        return line + mark
    rows = "".join(f"            {name},\n" for name in shown)
    head = f"    def __getitem__({mark}\n        self,\n        name: {literal}[\n"
    return f"{head}{rows}        ],\n        /,\n    ) -> {type_}: ..."
