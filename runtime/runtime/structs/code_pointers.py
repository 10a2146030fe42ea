"""Pointers to C functions: handles that Python calls, and C functions made of Python ones.

A type is a code: ``fn(i32,*{node})f64``. ctypes makes the calls: it knows the C ABI of numbers and
of structs of numbers, `struct_abi` what a struct or union is passed as.
"""

from __future__ import annotations

import ctypes

from .._core import CType, Handle, c_type_of, c_types, c_value, handle_allocate, report_unraisable
from .layout import COMPLEX, Refused
from .numbers import number_bytes
from .struct_abi import substitute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .record import Types

_NUMBERS: dict[str, Any] = {
    **{f"{sign}{bits}": getattr(ctypes, f"c_{name}{bits}")
       for sign, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
    "bool": ctypes.c_bool, "f32": ctypes.c_float, "f64": ctypes.c_double,
    "longdouble": ctypes.c_longdouble, "char": ctypes.c_byte,
    "f16": ctypes.c_float, "bf16": ctypes.c_float,  # in the low bits of the same register
}  # fmt: skip
_HALVES = ("f16", "bf16")


def split_type(code: str) -> list[str]:
    """Return the codes of the parameters and, at the end, of the result."""
    found: list[str] = []
    depth, start = 0, len("fn(")
    for i, char in enumerate(code):
        depth += (char == "(") - (char == ")")
        if depth == 0 and char == ")":
            return [*found, *filter(None, [code[start:i]]), code[i + 1 :]]
        if depth == 1 and char == ",":
            found.append(code[start:i])
            start = i + 1
    raise ValueError(f"{code!r}, expected the code of a function")


def _prototype(types: Types, code: str) -> Any:
    if code not in types.prototypes:
        *parameters, result = (_c_type(types, part) for part in split_type(code))
        types.prototypes[code] = ctypes.CFUNCTYPE(result, *parameters)
    return types.prototypes[code]


def _c_type(types: Types, code: str) -> Any:
    if code == "void":
        return None
    return substitute(types, code) if _is_struct(code) else _NUMBERS.get(code, ctypes.c_void_p)


def _is_struct(code: str) -> bool:
    return code[0] == "{" or code in COMPLEX


def call(handle: Handle, args: tuple[Any, ...], keywords: Any) -> Any:
    """Call the function that a handle points to."""
    types, type_ = c_types(handle), c_type_of(handle)
    if keywords:
        raise TypeError(f"{handle!r}: expected no keywords in a call")
    *parameters, result = split_type(type_.code)
    if len(args) != len(parameters):
        raise TypeError(f"{handle!r}: expected {len(parameters)} arguments, found {len(args)}")
    function = _prototype(types, type_.code)(handle.address)
    kept: list[Any] = []
    given = [
        _passed(handle, code, f"argument {i}", value, True, kept)
        for i, (code, value) in enumerate(zip(parameters, args, strict=True), 1)
    ]
    found = function(*given)
    return None if result == "void" else _value(handle, result, found)


def _value(handle: Handle, code: str, value: Any) -> Any:
    """Return what C passed, as a member of this type is read."""
    types = c_types(handle)
    data = bytes(value if _is_struct(code) else _c_type(types, code)(value))
    if code[0] != "{":
        return c_value(handle, types.type(code), data)
    made: Any = handle_allocate(handle, None, types.type(code))
    memoryview(made).cast("B")[:] = data
    return made


def _passed(handle: Handle, code: str, where: str, value: Any, owns: bool, kept: list[Any]) -> Any:
    """Return what ctypes passes for a value, and keep what it refers to."""
    from .members import assign, pointer_to, refused

    types = c_types(handle)
    if code[0] == "{":
        type_ = types.type(code)
        made: Any = handle_allocate(handle, None, type_)
        assign(made, type_, where, value)
        kept.append(made)
        return substitute(types, code).from_buffer_copy(memoryview(made).cast("B"))
    if code in _NUMBERS or code in COMPLEX:
        try:
            single = "f64" if code == "longdouble" else code
            data = number_bytes(single, value, where) + b"\0\0" * (code in _HALVES)
        except Refused:
            raise refused(code, where, value) from None
        number = ctypes.c_double if code == "longdouble" else _c_type(types, code)
        found = number.from_buffer_copy(data)
        return found if _is_struct(code) else found.value
    if value is None:
        return None
    address, keep = pointer_to(handle, types.type(code), where, value, owns)
    kept.append(keep)
    return address


def function_pointer(handle: Handle, type_: CType, function: Callable[..., Any]) -> Any:
    """Return (address, owner) of a C function that calls a Python one.

    An exception is reported by `sys.unraisablehook`, and C gets 0.
    """
    if type_.code[:3] != "fn(":
        raise TypeError(f"expected a handle of a function of type {type_.code}, found {function!r}")
    types, (*parameters, result) = c_types(handle), split_type(type_.code)
    if _is_struct(result):
        text = "expected a function of C: a Python one cannot return a struct or complex number"
        raise TypeError(f"{text} here ({type_.code}), found {function!r}")
    anchor = handle_allocate(handle, None, type_)  # which does not keep the struct alive
    is_pointer = result != "void" and result not in _NUMBERS

    def run(*given: Any) -> Any:
        try:
            codes = zip(parameters, given, strict=True)
            found = function(*(_value(anchor, code, value) for code, value in codes))
            if result != "void":
                return _passed(anchor, result, "the result", found, False, [])
        except BaseException as error:
            report_unraisable(error, function)
        return None if is_pointer or result == "void" else 0

    made = _prototype(types, type_.code)(run)
    return ctypes.cast(made, ctypes.c_void_p).value, made
