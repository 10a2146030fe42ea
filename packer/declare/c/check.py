"""Check a declaration against the source: the C text that the compiler confirms."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..declaration import SIGNED, UNSIGNED, Check, Declaration
from .code import Codes
from .layout import extents_of
from .numbers import NUMBERS, UnsupportedError, number_code
from .scope import Scope, is_plain
from .tokens import STANDARD, TYPEOF
from .types import Array, CType, Function, Named, Pointer, Tagged, render

if TYPE_CHECKING:
    from ..declaration import Struct

CALL_PREFIX = "__packer_call_"
IN_C_ONLY = " /* C */"  # the end of a condition that C++ does not have
_BYTES = ("i8", "u8")
_INTEGERS = {*SIGNED, *UNSIGNED}


def checked(
    declaration: Declaration, function: Function, scope: Scope, is_own: bool
) -> Declaration:
    """Add to a declaration what the compiler checks; `is_own` if its words are the source's own.

    If the source writes the same type with other words, the check has the source's words, and the
    sizes of the types that they name. Otherwise it has the words of the declaration, so that the
    compiler reports the difference.
    """
    conditions = [*_struct_conditions(declaration.structs, scope)]
    conditions += [text for a in declaration.aggregates for text in a.conditions]
    if declaration.symbol and scope.has_text:
        conditions += _type_conditions(function, scope)
        check = Check(function, tuple(dict.fromkeys(conditions)), declaration.symbol)
        return declaration._replace(
            symbol=CALL_PREFIX + declaration.name, is_external=False, check=check
        )
    found = None if declaration.symbol or is_own else scope.function(declaration.name)
    is_other = found and _canonical(found, scope) != _canonical(function, scope)
    if found and is_other and fits(declaration, found, scope):
        conditions += _char_conditions(declaration, found, scope)
        function = found
    elif found and not is_other:
        function = function._replace(is_noexcept=found.is_noexcept)
    conditions += _type_conditions(function, scope)
    return declaration._replace(check=Check(function, tuple(dict.fromkeys(conditions))))


def is_standard(declaration: Declaration) -> bool:
    """Return True if a declaration can be checked in a unit that has none of its types."""
    check = declaration.check
    has_types = check.function is not None and is_plain(check.function)
    return declaration.abi == "packed_c" or (has_types and not check.calls)


def _canonical(type_: CType, scope: Scope) -> str:
    """Write a type without names of typedefs and parameters."""
    found = scope.resolved(type_)
    if isinstance(found, Pointer):
        target = f"({_canonical(found.target, scope)})"
        return f"*{' '.join(sorted(found.quals))}{target}"
    if isinstance(found, Array):
        return f"[{''.join(found.extent)}]({_canonical(found.item, scope)})"
    if isinstance(found, Function):
        parts = [_canonical(found.result, scope)]
        for parameter in found.parameters:
            plain = scope.resolved(parameter.type)
            if isinstance(plain, Array):
                plain = Pointer(plain.item)
            elif not isinstance(plain, Function):
                plain = plain._replace(quals=())
            parts.append(_canonical(plain, scope))
        return f"{parts} {found.is_variadic}"
    quals = " ".join(sorted(q for q in found.quals if q != "restrict"))
    if isinstance(found, Tagged):
        return f"{quals} {found.kind} {found.name}"
    code = number_code(found.words)
    words = sorted(w for w in found.words if w not in ("int", "signed"))
    is_long = code in ("i64", "u64")  # long and long long are different types
    text = " ".join(words) if is_long or code is None or code == "char" else code
    return f"{quals} {text}"


def fits(declaration: Declaration, found: Function, scope: Scope) -> bool:
    """Return True if a call by the declaration is right for the function that the source has.

    A call by `symbol` is compiled: it converts numbers, and may pass any number of arguments.
    """
    is_called = bool(declaration.symbol)
    count = len(found.parameters)
    parameters = declaration.parameters[:count]
    if len(parameters) < count or found.is_variadic > is_called:
        return False
    if len(declaration.parameters) > count and not found.is_variadic:
        return False
    codes = Codes(scope)
    try:
        result = codes.result(found.result)
    except UnsupportedError as error:
        result = "*void" if _is_pointer(found.result, scope) else ""
        result = declaration.result if is_called and error.is_converted else result
    is_text = declaration.result == "str" and _is_bytes(found.result, scope)
    if not is_text and not _is_like(declaration.result, result, found.result, scope):
        return False
    for own, declared in zip(parameters, found.parameters, strict=True):
        array = scope.resolved(declared.type)  # whose extents matter to callers alone
        is_array = isinstance(array, Array)
        other = declared._replace(type=Pointer(extents_of(array)[1])) if is_array else declared
        try:
            code = codes.parameter(other, own.name in declaration.out or own.code[:2] == "*@")
        except UnsupportedError as error:
            code = _const(other.type, scope) if _is_pointer(other.type, scope) else ""
            code = own.code if is_called and error.is_converted else code
        if not _is_like(own.code, code, other.type, scope):
            return False
    return True


def _is_like(declared: str, found: str, type_: CType, scope: Scope) -> bool:
    """Return True if the code of the source's type can be called by the declared one."""
    if not found:
        return False
    if declared.split("[")[0] == found.split("[")[0] and declared != "status":
        return True
    resolved = scope.resolved(type_)
    if declared == "i32" and isinstance(resolved, Tagged) and resolved.kind == "enum":
        return found == "u32"  # the constants of an enum are ints, whatever its type is
    if declared in ("*void", "&void") and _is_pointer(type_, scope):
        return _const(type_, scope) == declared
    if found == "char" and declared in _BYTES:
        return True
    same = {declared.lstrip("*&@").strip("{}"), found.lstrip("*&@").strip("{}")}
    is_handle = declared[0] == "@" and found[:2] in ("*{", "&{")
    if len(same) == 1 and is_handle:
        return True
    return declared == "status" and found == "i32"


def _is_pointer(type_: CType, scope: Scope) -> bool:
    return isinstance(scope.resolved(type_), (Pointer, Array, Function))


def _is_bytes(type_: CType, scope: Scope) -> bool:
    """Return True for a pointer to unsigned or signed char, which may be text."""
    found = scope.resolved(type_)
    target = scope.resolved(found.target) if isinstance(found, Pointer) else None
    return isinstance(target, Named) and number_code(target.words) in ("u8", "i8")


def _const(type_: CType, scope: Scope) -> str:
    """Return the code of void * or const void *, whichever a pointer converts to."""
    found = scope.resolved(type_)
    target = found.target if isinstance(found, Pointer) else getattr(found, "item", None)
    while isinstance(target, Array):
        target = target.item
    quals = getattr(scope.resolved(target), "quals", ()) if target is not None else ()
    return "&void" if "const" in quals else "*void"


def _type_conditions(function: Function, scope: Scope) -> Iterator[str]:
    """Yield what was assumed about the names of types that the text uses."""
    for type_ in (function.result, *(p.type for p in function.parameters)):
        yield from _conditions(type_, scope)


def _conditions(type_: CType, scope: Scope) -> Iterator[str]:
    if isinstance(type_, Pointer):
        if number_code(getattr(type_.target, "words", ())) != "char":
            yield from _conditions(type_.target, scope)
        return
    if isinstance(type_, Array):
        yield from _conditions(type_.item, scope)
        return
    if isinstance(type_, Function):
        yield from _type_conditions(type_, scope)
        return
    found = scope.resolved(type_)
    is_typeof = isinstance(type_, Named) and type_.words[0].startswith(TYPEOF)
    if is_typeof and isinstance(found, Pointer):
        yield f"__builtin_types_compatible_p({render(type_)}, {render(found)}){IN_C_ONLY}"
    if isinstance(found, (Pointer, Array, Function)):
        is_call = isinstance(found, Pointer) and isinstance(scope.resolved(found.target), Function)
        if not is_call:
            yield from _conditions(found, scope)
        return
    is_name = isinstance(type_, Named) and type_.words[0] not in STANDARD and found != type_
    is_enum = isinstance(found, Tagged) and found.kind == "enum" and found.constants
    is_wide = isinstance(found, Named) and number_code(found.words) == "longdouble"
    if not (is_name or is_enum or is_wide):
        return
    text = render(type_._replace(quals=()) if not isinstance(type_, (Array, Function)) else type_)
    try:
        code = Codes(scope).value(found, type_, "")
    except UnsupportedError:
        return
    yield from _number_conditions(text, code, bool(is_enum))


def _number_conditions(text: str, code: str, is_enum: bool) -> Iterator[str]:
    if code in _INTEGERS:
        yield f"sizeof({text}) == {int(code[1:]) // 8}"
        yield f"({text})-1 {'<' if code[0] == 'i' else '>'} 0" + (IN_C_ONLY if is_enum else "")
    elif code in ("f32", "f64", "f16", "bf16"):
        yield f"sizeof({text}) == {int(code.lstrip('bf')) // 8}"
        known = {"f32": "float", "f64": "double", "f16": "_Float16", "bf16": "__bf16"}[code]
        yield f"__builtin_types_compatible_p({text}, {known}){IN_C_ONLY}"
    elif code == "longdouble":
        yield f"sizeof({text}) == 16"
    elif code in NUMBERS:
        yield f"sizeof({text}) == {({'bool': 1, 'c64': 8, 'c128': 16})[code]}"


def _char_conditions(declaration: Declaration, found: Function, scope: Scope) -> Iterator[str]:
    """Yield the sign of plain char that a declaration of an 8-bit integer assumes."""
    types = [found.result, *(p.type for p in found.parameters)]
    codes = [declaration.result, *(p.code for p in declaration.parameters)]
    for type_, code in zip(types, codes, strict=True):
        resolved = scope.resolved(type_)
        is_char = isinstance(resolved, Named) and number_code(resolved.words) == "char"
        if is_char and code in _BYTES:
            yield f"(char)-1 {'<' if code == 'i8' else '>'} 0"


def _struct_conditions(structs: tuple[Struct, ...], scope: Scope) -> Iterator[str]:
    """Yield the layout of structs as constant expressions."""
    for struct in structs:
        yield f"sizeof({struct.spelling}) == {struct.size}"
        for field in struct.fields:
            if field.name not in scope.macros:
                yield f"__builtin_offsetof({struct.spelling}, {field.name}) == {field.offset}"
