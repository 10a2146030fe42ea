"""The layouts of structs and unions that a function's types lead to, by value or by pointer.

`code` has the structs that a call converts; these here are read and written in place, so they may
have unions, bit-fields, pointers and members of any size. The compiler confirms each layout.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from weakref import WeakKeyDictionary

from ..declaration import Aggregate
from .layout import Layout, LayoutError, size_of_number
from .numbers import enum_code, number_code
from .scope import Scope, is_plain
from .types import Array, CType, Function, Named, Pointer, Tagged

_DEEPEST = 40
_MOST_BYTES = 1 << 40
# Numbers that a call cannot pass, and a struct may contain: code, size and alignment.
_LARGE = {
    ("__int128",): ("i128", 16, 16),
    ("__int128", "unsigned"): ("u128", 16, 16),
}
_NOT_PASSED = ("i128", "u128")  # to functions by their address


_units: WeakKeyDictionary[Scope, Aggregates] = WeakKeyDictionary()


def reached(function: Function, scope: Scope) -> tuple[Aggregate, ...]:
    """Return the structs and unions that a function's types lead to; none without a source."""
    if not scope.has_text or is_plain(function):
        return ()
    return aggregates_of(scope).reached(function)


def aggregates_of(scope: Scope) -> Aggregates:
    """Return the structs and unions of a unit."""
    return _units.setdefault(scope, Aggregates(scope))


class Aggregates:
    """The structs and unions of one unit, each computed once."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._made: dict[str, Aggregate | None] = {}  # None: the layout cannot be computed
        self._refused: dict[str, LayoutError] = {}  # why
        self._pending: list[tuple[Tagged, str]] = []  # the targets of pointers
        self._depth = 0

    def reached(self, function: Function) -> tuple[Aggregate, ...]:
        """Return the structs and unions that a function's types lead to; each after its parts."""
        known = self._with_parts([self._name_of(tag) for tag in _tags(function, self.scope)])
        return known + tuple(self._opaque(function))

    def _opaque(self, function: Function) -> Iterator[Aggregate]:
        """Yield the types without a layout to which a function may write pointers."""
        for parameter in function.parameters:
            found, depth = self.scope.resolved(parameter.type), 0
            while isinstance(found, (Array, Pointer)) and depth < _DEEPEST:
                target = found.item if isinstance(found, Array) else found.target
                found, depth = self.scope.resolved(target), depth + 1
            is_opaque = isinstance(found, Tagged) and found.kind != "enum" and not found.members
            if depth > 1 and isinstance(found, Tagged) and is_opaque and found.name:
                aliases = tuple(self.scope.typedefs_of(found))
                yield Aggregate("opaque", found.name, 0, 0, (), (), aliases)

    def variable(self, type_: CType, name: str) -> tuple[str, tuple[Aggregate, ...]]:
        """Return the code of a variable, and the structs and unions that it leads to."""
        code, *_ = self.member(type_, name, name)
        self._compute_pending()
        return code, self._with_parts(re.findall(r"\{(.*?)\}", code))

    def _with_parts(self, names: list[str]) -> tuple[Aggregate, ...]:
        found: dict[str, None] = {}
        while names:
            if (name := names.pop()) in found or (made := self._made.get(name)) is None:
                continue
            found[name] = None
            names += [target for m in made.members for target in re.findall(r"\{(.*?)\}", m.code)]
        return tuple(made for name, made in self._made.items() if made and name in found)

    def _name_of(self, type_: Tagged) -> str:
        """Compute a type, and what its pointers lead to; return its name."""
        self._pending.append((type_, type_.spelling))
        self._compute_pending()
        return type_.name

    def _compute_pending(self) -> None:
        while self._pending:
            target, spelling = self._pending.pop()
            try:
                self._whole(target, target.name, spelling)
            except LayoutError:
                self._made.setdefault(target.name, None)

    def whole(self, type_: Tagged) -> Aggregate:
        """Return the layout of a type by value; raise LayoutError if it is not known."""
        if type_.name in self.scope.internal:
            raise LayoutError(f"{type_.spelling} is a type of the C library")
        return self.placed(type_)

    def placed(self, type_: Tagged) -> Aggregate:
        """Return the layout of a type, also of the C library's."""
        return self._whole(type_, type_.name, type_.spelling)

    def _whole(self, type_: Tagged, name: str, spelling: str) -> Aggregate:
        if name in self._made:
            if (known := self._made[name]) is None:
                raise self._refused.get(name) or LayoutError(f"{spelling} contains itself")
            return known
        if not name or type_.members is None or self._depth > _DEEPEST:
            raise LayoutError(f"{spelling} has no known layout")
        self._made[name] = None  # while it is open
        self._depth += 1
        try:
            layout = Layout(self, type_, name, spelling)
        except LayoutError as error:
            self._refused[name] = error
            raise
        finally:
            self._depth -= 1
        del self._made[name]  # so that it follows its parts
        made = self._made[name] = layout.aggregate()
        return made

    # ---- Codes, sizes and alignments

    def member(self, type_: CType, name: str, spelling: str) -> tuple[str, int, int]:
        """Return the code, size and alignment of a member; `name` and `spelling` if it has none."""
        found = self.scope.resolved(type_)
        if isinstance(found, Array):
            item, size, alignment = self.member(found.item, name, f"{spelling}[0]")
            count = self.scope.extent(found.extent) if found.extent else 0
            if count is None or not 0 <= count * size < _MOST_BYTES:
                raise LayoutError(f"{name} has an unknown length")
            base, bracket, inner = item.partition("[")
            return f"{base}[{count}]{bracket}{inner}", count * size, alignment
        if isinstance(found, Pointer):
            return self._pointer(found, name, spelling), 8, 8
        if isinstance(found, Tagged) and found.kind != "enum":
            inline = isinstance(type_, Tagged) and type_.members is not None
            own = f"__typeof__({spelling})" if inline or not found.name else found.spelling
            made = self._whole(found, found.name or name, own)
            return f"{{{made.name}}}", made.size, made.alignment
        return self._number(found)

    def _number(self, type_: CType) -> tuple[str, int, int]:
        if isinstance(type_, Tagged) and type_.constants:
            code: str | None = enum_code(type_, self.scope)
        elif isinstance(type_, Named):
            if large := _LARGE.get(tuple(sorted(w for w in type_.words if w != "int"))):
                return large
            code = number_code(type_.words)
        else:
            code = None
        if code in (None, "void", "tensor", "status"):
            raise LayoutError("a type of unknown size")
        assert code is not None
        return code, *size_of_number(code)

    def _pointer(self, type_: Pointer, name: str, spelling: str) -> str:
        """Return the code of a pointer; the layout of its target is computed later."""
        found = self.scope.resolved(type_.target)
        if isinstance(found, Function):
            return self.function(found)
        if isinstance(found, Array):
            return "*void"
        mark = "&" if "const" in found.quals else "*"
        if isinstance(found, Pointer):
            inner = self._pointer(found, name, f"*{spelling}")
            return "strs" if inner in ("str", "*char") else f"{mark}{inner}"
        if isinstance(found, Tagged) and found.kind != "enum":
            if found.members is None or found.name in self.scope.internal:
                return f"@{found.name}" if found.name else f"{mark}void"
            own = found if found.name else found._replace(alias=name)
            self._pending.append((own, found.spelling or f"__typeof__(*{spelling})"))
            return f"{mark}{{{own.name}}}"
        try:
            code = self._number(found)[0]
        except LayoutError:
            return f"{mark}void"
        return "str" if code == "char" and mark == "&" else f"{mark}{code}"

    def pointer(self, type_: Pointer) -> str:
        """Return the code of a pointer to a pointer or to a function; ``*void`` if it has none."""
        code = self._pointer(type_, "", "")
        if code == "strs":
            return "**char"
        return code if code[0] in "*&" and "{}" not in code else "*void"

    def function(self, type_: Function) -> str:
        """Return the code of a pointer to a function: ``*fn(i32,*{node})f64``, or ``fn``."""
        try:
            codes = [self._passed(p.type) for p in type_.parameters]
            result = self._passed(type_.result, is_result=True)
        except LayoutError:
            return "fn"
        return "fn" if type_.is_variadic else f"*fn({','.join(codes)}){result}"

    def _passed(self, type_: CType, is_result: bool = False) -> str:
        """Return the code of what a function pointer's function takes or returns."""
        found = self.scope.resolved(type_)
        if isinstance(found, (Array, Pointer)):
            pointer = found if isinstance(found, Pointer) else Pointer(found.item)
            return re.sub(r"@([\w$]+)", r"*{\1}", self._pointer(pointer, "", ""))
        if isinstance(found, Function):
            return self.function(found)
        if is_result and isinstance(found, Named) and number_code(found.words) == "void":
            return "void"
        if isinstance(found, Tagged) and found.kind != "enum":
            return f"{{{self.whole(found).name}}}"
        code = self._number(found)[0]
        if code in _NOT_PASSED:
            raise LayoutError("a type that no pointer to a function passes")
        return code


def _tags(type_: CType, scope: Scope, depth: int = 0) -> Iterator[Tagged]:
    """Yield the structs and unions that a type names."""
    found = scope.resolved(type_)
    if depth > _DEEPEST:
        return
    if isinstance(found, Tagged):
        is_known = found.kind != "enum" and found.name and found.members is not None
        if is_known and found.name not in scope.internal:
            yield found
    elif isinstance(found, Pointer):
        yield from _tags(found.target, scope, depth + 1)
    elif isinstance(found, Array):
        yield from _tags(found.item, scope, depth + 1)
    elif isinstance(found, Function):
        for inner in (found.result, *(p.type for p in found.parameters)):
            yield from _tags(inner, scope, depth + 1)
