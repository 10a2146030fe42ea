"""Structs of declared functions: packing arguments, and results as named tuples.

The native core imports this package at the first call with a struct. Layouts are as the
compiler reported them when the library was exported (docs/format.md, "Facts about a function").
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from functools import lru_cache

from .._core import Handle, c_types, handle_at
from ..error import shown
from ..signature import python_name
from .arrays import has_dtype, packed_array, without_dtype
from .layout import COMPLEX, FORMATS, Layout, Layouts, Refused, layouts_of, struct_name
from .members import values_of
from .packing import Packing, is_pointee, items_of, name_at, ordered, pointee_name
from .pointers import packed_pointers
from .text import wide_text
from .whole import bytes_of, handle_with, packed_whole

__all__ = ["fields_of", "packed", "result_maker", "returned", "wide_text"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .._core import Function


def fields_of(function: Function, index: int, value: Any) -> Any:
    """Return the fields of a struct that is passed by value, as a tuple.

    NotImplemented if `value` has no fields.
    """
    layouts, code = layouts_of(function), function._declared[0][index][1]
    try:
        return _fields(layouts, layouts[struct_name(code)], without_dtype(layouts, code, value))
    except Refused as refused:
        raise _argument_error(function, index, refused) from None


def packed(function: Function, index: int, value: Any) -> Any:
    """Return the bytes of a struct that is passed by pointer, or of an array of pointers.

    They are (memoryview, tuple of what the bytes refer to, function to call after the call or
    None). NotImplemented if `value` is neither a mapping, a list of them, a tuple nor a
    structured NumPy array.
    """
    layouts, (name, code) = layouts_of(function), function._declared[0][index]
    try:
        if code.startswith("strs"):  # a Handle: the wrapper would free its memory
            text = f"expected a list of str, found {value!r}; declare 'void *{name}' for memory"
            raise Refused(TypeError, text)
        if code[0] in "=@":
            return packed_whole(function, code, name, value)
        if code[1] in "*&@":
            return packed_pointers(function, layouts, name, code, value)
        layout, is_written = layouts[struct_name(code)], code.startswith("*")
        if has_dtype(value):
            return packed_array(layouts, layout, value, is_written)
        if isinstance(value, Mapping) or (isinstance(value, list) and value):
            return Packing(function, layouts).pack(layout, value, is_written)
        if not isinstance(value, tuple):
            return NotImplemented
        if is_written:
            text = f"expected a dict or an array, whose fields are updated, found {shown(value)}"
            raise Refused(TypeError, text)
        return Packing(function, layouts).pack(layout, value, is_written)
    except Refused as refused:
        raise _argument_error(function, index, refused) from None


def _argument_error(function: Function, index: int, refused: Refused) -> Exception:
    name = function._declared[0][index][0]
    text = f"{function.name}: argument {index + 1} '{name}': {refused}"
    return refused.kind(f"{text}; declared as {function.signature}")


def _fields(layouts: Layouts, layout: Layout, value: Any, where: str = "") -> Any:
    if isinstance(value, Handle):
        value = values_of(value)
    if not isinstance(value, Mapping | tuple | list) and not where:
        return NotImplemented
    made = zip(layout.fields, ordered(layout, value, where), strict=True)
    return tuple(_item(layouts, f.code, f.extents, v, name_at(where, f.name)) for f, v in made)


def _item(layouts: Layouts, code: str, extents: tuple[int, ...], value: Any, where: str) -> Any:
    if extents:
        items = items_of(code, extents, value, where)
        return tuple(_item(layouts, code, extents[1:], item, where) for item in items)
    if code.startswith("{"):
        value = {} if value is ... else value
        return _fields(layouts, layouts[struct_name(code)], value, where)
    if isinstance(value, Handle) and not is_pointee(value, code):
        text = f"field {where!r}: expected a handle {pointee_name(code)!r}, found {value!r}"
        raise Refused(TypeError, text)
    if value is ...:
        return 0 if code in FORMATS else (0.0, 0.0) if code in COMPLEX else None
    return _complex(value, where) if code in COMPLEX else value


def _complex(value: Any, where: str) -> Any:
    if isinstance(value, tuple | list):
        return tuple(value)
    if hasattr(value, "__len__") or not hasattr(value, "real") or not hasattr(value, "imag"):
        raise Refused(TypeError, f"field {where!r}: expected a number, found {shown(value)}")
    return (value.real, value.imag)


@lru_cache(maxsize=256)
def _class(name: str, fields: tuple[str, ...]) -> Any:
    """Return the class of a struct's named tuples, the same for each load of a library."""
    valid = python_name(name) if name.isidentifier() else "struct"
    return namedtuple(valid, [python_name(field) for field in fields], rename=True)


def result_maker(function: Function) -> Callable[[Function, str, tuple[Any, ...]], Any]:
    """Return what turns the fields of a struct, in order, into a named tuple.

    The library owns it, so it refers to nothing that keeps the library open.
    """
    layouts = layouts_of(function)
    classes: dict[str, Any] = {
        name: _class(name, tuple(field.name for field in layout.fields))
        for name, layout in layouts.items()
    }

    # Structs of numbers alone, the common case: the class is called with the fields as they are.
    plain = {
        f"{{{name}}}": classes[name]._make
        for name, layout in layouts.items()
        if all(field.code in FORMATS and not field.extents for field in layout.fields)
    }

    def make(caller: Function, code: str, value: Any, extents: tuple[int, ...] = ()) -> Any:
        if code in plain and not extents and isinstance(value, tuple):
            return plain[code](value)
        if extents:
            return tuple(make(caller, code, item, extents[1:]) for item in value)
        if code[0] == "=" and isinstance(value, bytes):
            return handle_with(caller, c_types(caller).type(code[1:]), value, "")
        if code in COMPLEX and isinstance(value, tuple):
            return complex(*value)
        if code[0] in "*&@" and isinstance(value, Handle):
            return handle_at(caller, value.address, pointee_name(code), code[0] == "&")
        if not code.startswith("{") or not isinstance(value, tuple):
            return value
        layout = layouts[struct_name(code)]
        fields = zip(layout.fields, value, strict=True)
        return classes[layout.name](*(make(caller, f.code, item, f.extents) for f, item in fields))

    return make


def returned(function: Function, code: str, value: Any) -> Any:
    """Return what a callback passes to C for its result of this code."""
    layouts = layouts_of(function)
    try:
        if code[0] == "=":
            return bytes_of(function, code[2:-1], value)
        if code[0] == "{":
            made = _fields(layouts, layouts[struct_name(code)], without_dtype(layouts, code, value))
            return value if made is NotImplemented else made
        return _complex(value, "result") if value is not None else value
    except Refused as refused:
        raise refused.kind(f"{function.name}: result of a callback: {refused}") from None
