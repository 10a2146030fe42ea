"""Annotations by the codes of types: what a parameter accepts, and what a call returns.

The rows match the conversions in runtime/native/python/call/argument.c and results.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from keyword import iskeyword
from types import MappingProxyType

from runtime import Handle
from runtime.signature import python_name

from ...declare.code import is_pointers, split_extents, struct_of
from ...declare.declaration import Struct
from .names import Scope, is_identifier

_COMPLEX = ("c64", "c128")
_CONST_BYTES = ("&char", "&i8", "&u8")
_MOST_ITEMS = 16
_TUPLE_METHODS = ("count", "index")


class Annotations:
    """The annotations of one stub, and the classes and aliases that they need.

    `definitions` has the text of each class and alias, by what it stands for, in order.
    """

    def __init__(
        self,
        scope: Scope,
        kinds: frozenset[str],
        members: Mapping[str, Sequence[tuple[str, str]]] = MappingProxyType({}),
    ) -> None:
        self.scope = scope
        self._members = members
        self.definitions: dict[tuple[str, object], str] = {}
        self._names: dict[tuple[str, object], str] = {}
        self._kinds = kinds

    # ---- parameters

    def parameter(self, code: str, structs: dict[str, Struct]) -> str:
        """Return the annotation of a parameter."""
        use = self.scope.use
        base, extents = split_extents(code)
        none = "" if all(extents) and extents else " | None"
        if number := _number(base):
            return use({"int": "Int", "float": "Float", "bool": "Bool"}.get(number, "Complex"))
        if base == "str":
            names = ("str", "bytes", "bytearray", "memoryview")
            return f"{' | '.join(map(use, names))} | None"
        if base == "strs":
            text = use("str")
            return f"{use('list')}[{text}] | {use('tuple')}[{text}, ...]{none}"
        if base == "tensor":
            return use("Array")
        if base == "handle":  # of a kernel: memory on a device
            return f"{use('SupportsDLPack')} | {use('Handle')} | None"
        if base == "fn":
            return f"{use('Callable')}[..., {use('Any')}] | None"
        if base[0] == "{":
            return self._by_value(structs[struct_of(base)], structs)
        if is_pointers(base):
            any_ = use("Any")
            return f"{use('list')}[{any_}] | {use('tuple')}[{any_}, ...] | {use('Handle')}{none}"
        if base[0] in "*&" and struct_of(base):
            return self._by_pointer(structs[struct_of(base)], structs, base[0]) + none
        if base in ("*void", "&void"):
            return f"{use('Bytes' if base[0] == '&' else 'Array')} | {use('Handle')} | None"
        if base[0] == "@":
            return f"{self._handles(base[1:])} | None"
        if base[0] in "*&":
            return use("Bytes" if base in _CONST_BYTES else "Array") + none
        return use("Any")

    def _handles(self, kind: str) -> str:
        own = [self.handle(kind)] if kind in self._kinds else []
        return " | ".join([*own, self.scope.use("VoidHandle")])

    def handle(self, kind: str) -> str:
        """Return the class of the handles of a kind."""
        if kind == "void":
            return self.scope.use("VoidHandle")
        key = ("handle", kind)
        if key not in self.definitions:
            name = self._names[key] = self.scope.public(kind, f"{kind}_handle")
            marks = f"@{self.scope.use('type_check_only')}\n@{self.scope.use('final')}\n"
            head = f"class {name}({self.scope.use('Handle')}):  # type: ignore[misc]"
            doc = f'    """A handle of kind {kind!r}."""'
            self.definitions[key] = f"{marks}{head}\n{doc}"
            self.definitions[key] += "".join(self._member_lines(self._members.get(kind, ())))
        return self._names[key]

    def _member_lines(self, members: Sequence[tuple[str, str]]) -> Iterator[str]:
        """Yield the annotations of members that are attributes of a handle."""
        names = {name for name, _ in members}
        for name, code in members:
            if is_identifier(name) and not iskeyword(name) and not hasattr(Handle, name):
                type_ = self._member(code)
                is_hidden = names & {*re.findall(r"\w+", type_)}
                yield f"\n    {name}: {self._outside(type_, [*names]) if is_hidden else type_}"

    def _member(self, code: str) -> str:
        """Return the annotation of a member as it is read; assignments accept more at run time."""
        use = self.scope.use
        base, extents = split_extents(code)
        target = base[1:].strip("{}")
        if base == "char" and len(extents) == 1:
            return use("str")
        if extents or (base[0] == "{" and target not in self._members):
            return use("Handle")
        if base in ("str", "*char"):
            return f"{use('str')} | None"
        if number := _number("f64" if base == "longdouble" else base):
            return use(number)
        if base[0] == "{":
            return self.handle(target)
        if base[1:4] == "fn(":
            return use("Any")
        is_known = base[:2] in ("*{", "&{") and target in self._members
        return f"{self.handle(target) if is_known else use('Handle')} | None"

    def _by_value(self, struct: Struct, structs: dict[str, Struct]) -> str:
        """A mapping, a tuple, a list or a structured scalar."""
        use = self.scope.use
        texts = [f"{use('Mapping')}[{use('str')}, {use('Any')}]", self._tuple(struct, structs)]
        are_numbers = all(is_number(field.code) for field in struct.fields)
        items = [use("int"), use("float")] if are_numbers else [use("Any")]
        texts += [f"{use('list')}[{item}]" for item in items]
        return self._alias("value", struct, " | ".join([*texts, use("Record")]))

    def _by_pointer(self, struct: Struct, structs: dict[str, Struct], mark: str) -> str:
        """A mapping, an array or a handle; a tuple, if the function does not write to it."""
        use = self.scope.use
        texts = [f"{use('Mapping')}[{use('str')}, {use('Any')}]"]
        texts += [self._tuple(struct, structs), use("Bytes")] if mark == "&" else [use("Array")]
        texts += [use("Record"), self._handles(struct.name)]
        return self._alias("in" if mark == "&" else "inout", struct, " | ".join(texts))

    def _alias(self, what: str, struct: Struct, text: str) -> str:
        key = (what, _layout(struct))
        if key not in self.definitions:
            name = self._names[key] = self.scope.private(f"{struct.name}_{what}")
            self.definitions[key] = f"{name}: {self.scope.use('TypeAlias')} = {text}"
        return self._names[key]

    def _tuple(self, struct: Struct, structs: dict[str, Struct]) -> str:
        fields = (self._field(field.code, structs) for field in struct.fields)
        return f"{self.scope.use('tuple')}[{', '.join(fields)}]"

    def _field(self, code: str, structs: dict[str, Struct]) -> str:
        """Return what a field of a tuple accepts."""
        base, extents = split_extents(code)
        if extents or not (_number(base) or base[0] == "{"):
            return self.scope.use("Any")
        return self.parameter(base, structs)

    # ---- results

    def results(self, codes: list[str], structs: dict[str, Struct]) -> str:
        """Return the annotation of all results of a call."""
        found = [self.result(code, structs) for code in codes]
        if len(found) < 2:
            return found[0] if found else "None"
        return f"{self.scope.use('tuple')}[{', '.join(found)}]"

    def result(self, code: str, structs: dict[str, Struct]) -> str:
        """Return the annotation of one result."""
        use = self.scope.use
        base, extents = split_extents(code)
        if extents:
            inner = self.result(base, structs)
            for extent in reversed(extents):
                count = int(extent)
                items = ", ".join([inner] * count) if count <= _MOST_ITEMS else f"{inner}, ..."
                inner = f"{use('tuple')}[{items}]"
            return inner
        if number := _number(base):
            return use(number)
        if base in ("str", "*char"):
            return f"{use('str')} | None"
        if base == "tensor":
            return use("Tensor")
        if base[0] == "{":
            return self._named_tuple(structs[struct_of(base)], structs)
        if base[0] == "@":
            return f"{self.handle(base[1:])} | None"
        if base[1:4] == "fn(":
            return f"{use('Callable')}[..., {use('Any')}] | None"
        if base[0] in "*&" and base[1:] != "void":
            return f"{use('Handle')} | None"
        return f"{use('VoidHandle')} | None" if base[0] in "*&" else use("Any")

    def _named_tuple(self, struct: Struct, structs: dict[str, Struct]) -> str:
        """Return the class of a struct's named tuples; a plain tuple if fields are renamed."""
        key = ("tuple", _layout(struct))
        if key in self.definitions:
            return self._names[key]
        names = [python_name(field.name) for field in struct.fields]
        types = [self.result(field.code, structs) for field in struct.fields]
        if not all(is_identifier(n) and n[0] != "_" for n in names) or len({*names}) < len(names):
            return f"{self.scope.use('tuple')}[{', '.join(types)}]"
        name = self._names[key] = self.scope.public(struct.name, f"{struct.name}_tuple")
        types = [self._outside(type_, names) for type_ in types]
        marks = f"@{self.scope.use('type_check_only')}\n"
        head = f"class {name}({self.scope.use('NamedTuple')}):\n"
        body = "\n".join(
            f"    {n}: {t}" + ("  # type: ignore[assignment]" if n in _TUPLE_METHODS else "")
            for n, t in zip(names, types, strict=True)
        )
        self.definitions[key] = f"{marks}{head}{body}"
        return name

    def _outside(self, type_: str, fields: list[str]) -> str:
        """Return another name for a type that has the name of a field, which would hide it."""
        if type_.isidentifier() and type_ not in fields:
            return type_
        key = ("alias", type_)
        if key not in self.definitions:
            name = self._names[key] = self.scope.private("field")
            self.definitions[key] = f"{name}: {self.scope.use('TypeAlias')} = {type_}"
        return self._names[key]


def _number(code: str) -> str:
    """Return the builtin that a number becomes; empty for other codes."""
    if code in _COMPLEX:
        return "complex"
    if code in ("f16", "bf16", "f32", "f64"):
        return "float"
    is_int = code == "char" or (code[:1] in ("i", "u") and code[1:].isdecimal())
    return "bool" if code == "bool" else "int" if is_int else ""


def is_number(code: str) -> bool:
    """Return True for a number that needs no conversion: not a complex one."""
    return _number(code) not in ("", "complex")


def _layout(struct: Struct) -> object:
    """Return the name and fields of a struct: two functions may see different ones of a name."""
    return struct.name, tuple((field.name, field.code) for field in struct.fields)
