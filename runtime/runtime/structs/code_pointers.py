"""Pointers to C functions: handles that Python calls, and C functions made of Python ones.

A type is a code: ``fn(i32,*{node})f64``. ctypes makes the calls: it knows the C ABI.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

from .._core import CType, Handle, c_type_of, c_types, c_value, handle_allocate, report_unraisable
from .layout import Refused
from .packing import number_bytes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NUMBERS: dict[str, Any] = {
    **{f"{sign}{bits}": getattr(ctypes, f"c_{name}{bits}")
       for sign, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)},
    "bool": ctypes.c_bool, "f32": ctypes.c_float, "f64": ctypes.c_double,
    "longdouble": ctypes.c_longdouble, "char": ctypes.c_byte,
}  # fmt: skip


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


@lru_cache(maxsize=1024)
def _prototype(code: str) -> Any:
    *parameters, result = map(_c_type, split_type(code))
    return ctypes.CFUNCTYPE(result, *parameters)


def _c_type(code: str) -> Any:
    return None if code == "void" else _NUMBERS.get(code, ctypes.c_void_p)


def call(handle: Handle, args: tuple[Any, ...], keywords: Any) -> Any:
    """Call the function that a handle points to."""
    type_ = c_type_of(handle)
    if type_.code[:3] != "fn(" or keywords:
        text = "no keywords" if keywords else "a pointer to a function of a known type"
        raise TypeError(f"{handle!r}: expected {text} in a call")
    *parameters, result = split_type(type_.code)
    if len(args) != len(parameters):
        raise TypeError(f"{handle!r}: expected {len(parameters)} arguments, found {len(args)}")
    kept: list[Any] = []
    given = [
        _passed(handle, code, f"argument {i}", value, True, kept)
        for i, (code, value) in enumerate(zip(parameters, args, strict=True), 1)
    ]
    found = _prototype(type_.code)(handle.address)(*given)
    return None if result == "void" else _value(handle, result, found)


def _value(handle: Handle, code: str, value: Any) -> Any:
    """Return what C passed, as a member of this type is read."""
    return c_value(handle, c_types(handle).type(code), bytes(_c_type(code)(value)))


def _passed(handle: Handle, code: str, where: str, value: Any, owns: bool, kept: list[Any]) -> Any:
    """Return what ctypes passes for a value, and keep what it refers to."""
    from .members import pointer_to, refused

    if code in _NUMBERS:
        try:
            single = "f64" if code == "longdouble" else code
            data = number_bytes(single, value, where)
        except Refused:
            raise refused(code, where, value) from None
        made = ctypes.c_double if code == "longdouble" else _NUMBERS[code]
        return made.from_buffer_copy(data).value
    if value is None:
        return None
    address, keep = pointer_to(handle, c_types(handle).type(code), where, value, owns)
    kept.append(keep)
    return address


def function_pointer(handle: Handle, type_: CType, function: Callable[..., Any]) -> Any:
    """Return (address, owner) of a C function that calls a Python one.

    An exception is reported by `sys.unraisablehook`, and C gets 0.
    """
    if type_.code[:3] != "fn(":
        raise TypeError(f"expected a handle of a function of type {type_.code}, found {function!r}")
    *parameters, result = split_type(type_.code)
    anchor = handle_allocate(handle, None, type_)  # which does not keep the struct alive

    def run(*given: Any) -> Any:
        try:
            codes = zip(parameters, given, strict=True)
            found = function(*(_value(anchor, code, value) for code, value in codes))
            if result != "void":
                return _passed(anchor, result, "the result", found, False, [])
        except BaseException as error:
            report_unraisable(error, function)
        return None if _c_type(result) in (None, ctypes.c_void_p) else 0

    made = _prototype(type_.code)(run)
    return ctypes.cast(made, ctypes.c_void_p).value, made
