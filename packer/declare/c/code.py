"""Codes of C types, or why a type has none. One class, since codes contain codes of other types."""

from __future__ import annotations

from ..declaration import Callback, Field, Parameter, Struct, Value
from .aggregate import aggregates_of
from .definition import definition_of
from .layout import LayoutError, alignment_of_code, extents_of
from .numbers import (
    CONVERTED,
    NUMBERS,
    UnsupportedError,
    enum_code,
    extent_of,
    number_code,
    unknown,
)
from .scope import Scope
from .types import Array, CType, Declared, Function, Named, Pointer, Tagged, render

_MOST_FIELDS = 1024  # of a struct by value


class Codes:
    """The codes of the types in one function's declaration, and what they name.

    `structs` has each struct after the ones in it, `callbacks` one for each parameter of
    code ``fn``.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.structs: dict[str, Struct] = {}
        self.values: dict[str, Value] = {}
        self.callbacks: list[Callback] = []

    def result(self, type_: CType) -> str:
        """Return the code of a function's result."""
        found = self.scope.resolved(type_)
        if not isinstance(found, Pointer):
            return self.value(found, type_, "")
        target = self.scope.resolved(found.target)
        if isinstance(target, Pointer):
            return self._pointers(found)
        if isinstance(target, Function):
            code = aggregates_of(self.scope).function(target)
            return "*void" if code == "fn" else code
        code = self._pointer(found, "")
        is_const = code[0] == "&"
        if is_const and code != "&void":
            code = "*" + code[1:]
        if code in ("*void", "&void", "str", "*char") or code[0] == "@":
            return code
        if code[:2] == "*{":
            return "@" + code[2:-1]
        code = code.replace("[]", "", 1)  # a pointer to an array
        base, *extents = code[1:].replace("]", "").split("[")
        if base in (*NUMBERS, "char", "longdouble") and all(extent.isdigit() for extent in extents):
            return code
        instead = "const char *" if code in ("*u8", "*i8") and is_const else "void *"
        raise UnsupportedError("a pointer to data of unknown size", instead)

    def parameter(self, declared: Declared, is_out: bool = False) -> str:
        """Return the code of a parameter."""
        name = declared.name
        if declared.storage:
            raise UnsupportedError("a storage class", render(declared.type, name))
        found = self.scope.resolved(declared.type)
        if isinstance(found, Array):
            return self._array(found, name)
        if isinstance(found, Function):
            found = Pointer(found)
        if isinstance(found, Pointer):
            return self._pointer(found, name, is_out)
        code = self.value(found, declared.type, name)
        if code == "void":
            raise UnsupportedError("a parameter of type void", f"void *{name}")
        if code == "status":
            raise UnsupportedError("dso_status is only a result type", f"int {name}")
        return code

    def value(self, type_: CType, written: CType, name: str) -> str:
        """Return the code of a type that is not a pointer; ``char`` for plain char."""
        if isinstance(type_, Function):
            raise UnsupportedError("a function", f"void *{name}")
        if isinstance(type_, Tagged):
            return self._tagged(type_, name)
        if not isinstance(type_, Named):
            raise UnsupportedError(f"a value of type {render(type_)}", f"void *{name}")
        code = number_code(type_.words)
        if code == "tensor":
            raise UnsupportedError("a struct by value", f"DLTensor *{name}")
        if code is not None:
            return code
        text = render(written, "").removeprefix("const ")
        if instead := CONVERTED.get(tuple(sorted(w for w in type_.words if w != "int"))):
            raise UnsupportedError(text, f"{instead} {name}".strip(), is_converted=True)
        if self.scope.has_unread(text):
            raise UnsupportedError(f"{text}, a type that only the compiler reads")
        raise unknown(text, name)

    def _tagged(self, type_: Tagged, name: str) -> str:
        """Return the code of an enum, or of a struct by value."""
        pointer = render(Pointer(type_._replace(quals=("const",))), name)
        if type_.kind == "enum":
            if not type_.constants:
                raise unknown(type_.spelling, name)
            return enum_code(type_, self.scope)
        is_known = type_.name in self.structs
        try:
            struct = self._struct(type_)
        except LayoutError:
            return self._bytes(type_, pointer)
        is_large = len(struct.fields) > _MOST_FIELDS
        if is_large or not self._is_natural(struct):
            if not is_known:
                del self.structs[struct.name]
            return self._bytes(type_, pointer)
        return f"{{{struct.name}}}"

    def _bytes(self, type_: Tagged, pointer: str) -> str:
        """Return the code of a struct or union whose bytes are passed."""
        try:
            size = aggregates_of(self.scope).whole(type_).size
            made = Value(type_.name, size, definition_of(type_, self.scope))
        except LayoutError as error:
            reason = error if type_.members else f"{type_.spelling} is incomplete"
            raise UnsupportedError(f"a {type_.kind} by value: {reason}", pointer) from None
        self.values[made.name] = made
        return f"={{{made.name}}}"

    def _struct(self, type_: Tagged) -> Struct:
        """Return a struct of which calls convert each field."""
        if type_.name in self.structs:
            return self.structs[type_.name]
        placed = aggregates_of(self.scope).placed(type_)
        is_other = type_.kind == "union" or "lign" in type_.attributes
        if is_other or type_.name.startswith("_IO_"):  # FILE: only the C library makes one
            raise LayoutError(f"{type_.spelling} is a union, or aligned, or the C library's")
        members = type_.members or ()
        if odd := [member.name for member in members if member.bits or not member.name]:
            raise LayoutError(f"{type_.spelling} has {odd[0]!r}, which no call converts")
        fields = [
            Field(member.name, self._field(type_, member, at.code), at.offset)
            for member, at in zip(members, placed.members, strict=True)
        ]
        made = Struct(type_.name, type_.spelling, placed.size, placed.alignment, tuple(fields))
        return self.structs.setdefault(made.name, made)

    def _field(self, struct: Tagged, member: Declared, placed: str) -> str:
        """Return the code of a field, from its code in memory that is read in place."""
        if "lign" in member.attributes or "packed" in member.attributes or "[0]" in placed:
            raise LayoutError(f"{struct.spelling} has {member.name!r}, which no call converts")
        found = self.scope.resolved(member.type)
        if isinstance(found, Pointer):
            return self._field_pointer(found)
        while isinstance(found, Array):
            found = self.scope.resolved(found.item)
        code, bracket, extents = placed.partition("[")
        if isinstance(found, Tagged) and found.kind != "enum":
            code = f"{{{self._struct(found).name}}}"
        elif code != "char" and code not in NUMBERS:
            raise LayoutError(f"{struct.spelling} has {member.name!r} of type {placed}")
        return code + bracket + extents

    def _field_pointer(self, type_: Pointer) -> str:
        target = self.scope.resolved(type_.target)
        if isinstance(target, Function):
            return "@function"
        const = "const" in getattr(target, "quals", ())
        code = number_code(target.words) if isinstance(target, Named) else None
        if code == "char":
            return "str" if const else "*char"
        return ("&" if const else "*") + (code if code in NUMBERS else "void")

    def _is_natural(self, struct: Struct) -> bool:
        """Return True if nothing packs a struct or one in it."""
        alignments = []
        for code in (field.code.partition("[")[0] for field in struct.fields):
            inner = self.structs[code[1:-1]] if code[0] == "{" else None
            if inner and not self._is_natural(inner):
                return False
            alignments.append(inner.alignment if inner else alignment_of_code(code))
        return struct.alignment == max(alignments)

    def _pointer(self, type_: Pointer, name: str, is_out: bool = False) -> str:
        """Return the code of a pointer."""
        target = self.scope.resolved(type_.target)
        if isinstance(target, Function):
            return self._callback(target, name)
        if isinstance(target, Pointer):
            return self._second_level(type_, target, name, is_out)
        if isinstance(target, Array):
            return self._array(Array(target, ()), name)
        if is_out and isinstance(target, Tagged) and target.members and "const" not in target.quals:
            return f"*{self._tagged(target, name)}"
        return self._pointee(target, type_.target, name)

    def _pointee(self, target: CType, written: CType, name: str) -> str:
        const = "&" if "const" in getattr(target, "quals", ()) else "*"
        if isinstance(target, Tagged):
            if target.kind == "enum":
                return const + enum_code(target, self.scope)
            try:
                return f"{const}{{{self._struct(target).name}}}"
            except LayoutError:
                return f"@{target.name}" if target.name else f"{const}void"
        assert isinstance(target, Named)
        code = number_code(target.words)
        if code == "status":
            raise UnsupportedError("dso_status is only a result type", f"int *{name}")
        if code == "tensor":
            return code
        if code == "char":
            return "str" if const == "&" else "*char"
        if code is not None:
            return const + code
        words = tuple(sorted(w for w in target.words if w != "int"))
        if words in CONVERTED:
            what = f"a pointer to {' '.join(target.words)}"
            raise UnsupportedError(what, f"{'const ' if const == '&' else ''}void *{name}")
        if self.scope.is_open:
            return f"@{target.words[0]}"
        text = render(written, "").removeprefix("const ")
        error = unknown(text, name)
        is_name = error.instead.startswith("int")
        raise UnsupportedError(str(error), f"struct {text} *{name}") if is_name else error

    def _second_level(self, type_: Pointer, target: Pointer, name: str, is_out: bool) -> str:
        """Return the code of a pointer to a pointer: text, an array of pointers, or a result."""
        last = self.scope.resolved(target.target)
        inner = (
            "*void" if isinstance(last, (Array, Function, Pointer)) else self._pointer(target, "")
        )
        if inner in ("str", "*char"):
            return "*str" if is_out else "strs"
        if inner[:2] == "*{" and is_out:
            inner = f"@{inner[2:-1]}"
        if inner == "tensor":
            raise UnsupportedError("a pointer to a pointer to a tensor", f"void *{name}")
        return ("&" if "const" in target.quals else "*") + inner

    def _pointers(self, type_: Pointer) -> str:
        """Return the code of a result that is a pointer to pointers."""
        target = self.scope.resolved(type_.target)
        assert isinstance(target, Pointer)
        inner = self.scope.resolved(target.target)
        if isinstance(inner, Pointer):
            return "*" + self._pointers(target)
        if isinstance(inner, (Array, Function)):
            return aggregates_of(self.scope).pointer(type_)
        code = self._pointee(inner, target.target, "")
        return "**char" if code == "str" else f"*{code}"

    def _array(self, type_: Array, name: str) -> str:
        """Return the code of a parameter that is written as an array."""
        extents, item = extents_of(type_)
        while isinstance(found := self.scope.resolved(item), Array):  # typedefs of arrays
            more, item = extents_of(found)
            extents += more
        code = (
            self._second_level(Pointer(found), found, name, False)
            if isinstance(found, Pointer)
            else self._pointee(found, item, name)
        )
        known = [extent_of(extent, item, name, self.scope) for extent in extents]
        is_opaque = code[0] == "@" or code[1:] == "void"
        if is_opaque and len(known) == 1:  # such as jmp_buf: one that callers allocate
            return code
        if code == "strs" and len(known) == 1:
            return code + "".join(f"[{text}]" for text in known if text)
        is_nested = code[1] in "*&@" and len(known) != 1
        if is_nested or (code[0] not in "*&" and code != "str"):
            raise UnsupportedError("an array of this type", f"void *{name}")
        if all(known[1:]) and known != [""]:
            code = ("&char" if code == "str" else code) + "".join(f"[{text}]" for text in known)
        return code

    def _callback(self, type_: Function, name: str) -> str:
        """Return the code of a function pointer, and keep the type of the function."""
        instead = f"void *{name}"
        if type_.is_variadic:
            raise UnsupportedError("a callback with a variable number of arguments", instead)
        parameters = []
        for index, declared in enumerate(type_.parameters):
            own = declared.name or f"arg{index}"
            try:
                code = self._passed(declared)
            except UnsupportedError as error:
                what = f"a callback's parameter {own!r}: {error}"
                raise UnsupportedError(what, instead) from None
            parameters.append(Parameter(own, render(declared.type), code))
        try:
            result = self.result(type_.result)
        except UnsupportedError as error:
            raise UnsupportedError(f"a callback's result: {error}", instead) from None
        if result in ("any", "status", "tensor"):
            raise UnsupportedError(f"a callback that returns {render(type_.result)}", instead)
        self.callbacks.append(Callback(name, tuple(parameters), result, render(type_.result)))
        return "fn"

    def _passed(self, declared: Declared) -> str:
        """Return the code of what C code passes to a callback."""
        found = self.scope.resolved(declared.type)
        if isinstance(found, Array):
            return "*void" if "[]" in (code := self._array(found, declared.name)) else code
        if not isinstance(found, Pointer):
            return self.parameter(declared)
        target = self.scope.resolved(found.target)
        if isinstance(target, (Function, Pointer)) and self.scope.has_text:
            return aggregates_of(self.scope).pointer(found)
        if isinstance(target, (Function, Pointer, Array)):
            return "*void"
        code = self._pointee(target, found.target, "")
        return f"@{code[2:-1]}" if code[1] == "{" else code
