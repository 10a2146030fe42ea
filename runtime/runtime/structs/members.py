"""Members of structs in C memory: what the native core does not convert itself.

`_core.Handle` calls these functions for arrays, for pointers that are assigned, for numbers that C
has and Python has not, and for errors.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import NoReturn

from .._core import (
    CType,
    Handle,
    buffer_address,
    c_type_of,
    c_types,
    handle_types_match,
    memory_at,
)
from ..error import near_names, shown
from .code_pointers import call, function_pointer
from .layout import COMPLEX, Refused
from .numbers import halves, number_bytes
from .packing import view_of
from .record import Types, array_of, types_of
from .text import UNITS, encoded_text, text_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["call", "types_of"]

_forever: list[Any] = []


def decode(code: str, data: bytes) -> Any:
    """Return the value of a number that C has and Python has not."""
    if code in ("i128", "u128"):
        return int.from_bytes(data, "little", signed=code == "i128")
    if code == "bf16":
        return struct.unpack("=f", halves(data))[0]
    if code == "f16":
        return struct.unpack("=e", data)[0]
    return complex(*struct.unpack(f"={COMPLEX[code]}", data))


def encode(code: str, where: Any, value: Any) -> bytes:
    """Return the bytes of such a number."""
    try:
        if code in ("i128", "u128"):
            return int(value.__index__()).to_bytes(16, "little", signed=code == "i128")
        return number_bytes(code, value, str(where))
    except (Refused, AttributeError, OverflowError):
        raise refused(code, where, value) from None


def refused(code: str, where: Any, value: Any) -> Exception:
    """Return the error of a value that a member cannot have."""
    kind = OverflowError if isinstance(value, int | float | complex) else TypeError
    return kind(f"{_named(where)}: expected a value of type {code}, found {shown(value)}")


def _named(where: Any) -> str:
    return f"member {where!r}" if isinstance(where, str) else f"item {where}"


def no_member(handle: Handle, type_: CType, name: Any, is_item: bool) -> Exception:
    """Return the error of a member that a struct does not have."""
    if type_.members is None:
        text = f"{handle!r}: expected a struct, found {type_.code}, which has no member {name!r}"
        return TypeError(text) if is_item else AttributeError(text)
    names = list(type_.members)
    if name in names:
        text = f"{handle!r}: {name!r} is an attribute of the handle itself; use handle[{name!r}]"
        return AttributeError(text)
    near = near_names(str(name), names) or f"; it has {', '.join(names[:20])}"
    text = f"{handle!r} has no member {name!r}{near}"
    return KeyError(text) if is_item else AttributeError(text)


# ---- Arrays


def array_type(handle: Handle, type_: CType, count: Any) -> CType:
    """Return the type of `count` values, for `Handle.array`; None: of the ones before a zero."""
    most = type_.count if type_.code[-1:] == "]" else None
    if type_.code[-1:] == "]" and type_.target is not None:
        type_ = type_.target
    if count is None and type_.size <= 8:
        count = _count_before_zero(handle, type_.size, most)
    if not isinstance(count, int) or not 0 <= count < 1 << 40:
        raise ValueError(f"array: expected a number of items of at least 0, found {shown(count)}")
    if type_.size == 0:
        raise TypeError(f"array: expected items of a known type, found {type_.code}")
    return array_of(type_, count)


def _count_before_zero(handle: Handle, size: int, most: int | None) -> int:
    if size == 1 and most is None:
        return len(memory_at(handle.address, -1, handle))
    count = 0
    while count != most and any(memory_at(handle.address + count * size, size, handle)):
        count += 1
    return count


def type_of_code(types: Types, code: str) -> CType:
    """Return the type of what a result points to, by its code: ``*i32[4]``, ``**char``."""
    return types.type(code[1:])


def items(handle: Handle, place: slice) -> list[Any]:
    """Return the items of a slice, as a list."""
    return [handle[i] for i in range(*place.indices(len(handle)))]


def set_items(handle: Handle, place: slice, value: Any) -> None:
    """Assign as many items as a slice has."""
    places = range(*place.indices(len(handle)))
    count = len(value) if hasattr(value, "__len__") else -1
    if count != len(places):
        _refuse_count(f"{place.start}:{place.stop}", value, len(places), count)
    for i, item in zip(places, value, strict=True):
        handle[i] = _plain(item)


def _plain(item: Any) -> Any:
    """Return a scalar of NumPy as a number."""
    return item.item() if hasattr(item, "item") and not hasattr(item, "__len__") else item


def values_of(handle: Handle) -> Any:
    """Return a struct as a mapping and an array as a list, with all that they contain."""
    type_ = c_type_of(handle)
    if type_.members is None:
        item = type_.target or type_
        return [_part(handle, i, item) for i in range(type_.count)]
    return {name: _part(handle, name, m.type) for name, m in type_.members.items()}


def _part(handle: Handle, key: Any, type_: CType) -> Any:
    """Return a struct or an array that is contained as its values; others as they are."""
    value, is_part = handle[key], type_.code[0] == "{" or type_.code[-1] == "]"
    return values_of(value) if is_part and isinstance(value, Handle) else value


# ---- Assignment


def pointer_to(handle: Handle, type_: CType, where: Any, value: Any, owns: bool) -> Any:
    """Return (address, what it refers to) for a pointer that is assigned.

    `owns` is True for memory of `new`: it keeps text and arrays. other pointers may be freed by C.
    """
    if isinstance(value, Handle):
        return _handle_address(handle, type_, where, value), value
    if callable(value) and type_.target is not None and type_.code[1:3] == "fn":
        made = function_pointer(handle, type_.target, value)
        if not owns:
            _forever.append(made)  # C code may call it at any time
        return made
    code = type_.code
    is_text = code in ("str", "*char") and isinstance(value, str | bytes)
    is_array = code[0] in "*&" and type_.target is not None and type_.target.members is None
    if (not is_text and not is_array) or code[1:3] == "fn":
        raise refused(code, where, value)
    if not owns:
        text = (
            f"{_named(where)}: expected a handle or None, found {shown(value)}: the object belongs"
        )
        raise TypeError(f"{text} to C, which may free the pointer; call a function that sets it")
    try:
        view = text_memory(code, value, str(where)) if is_text else view_of(code, value, str(where))
    except Refused as error:
        raise _of_member(error) from None
    return buffer_address(view), view


def _of_member(refused: Refused) -> Exception:
    return refused.kind(str(refused).replace("field", "member", 1))


def _handle_address(handle: Handle, type_: CType, where: Any, value: Handle) -> int:
    if value.closed:
        raise ValueError(f"{_named(where)}: expected an open handle, found {value!r}")
    kind = type_.target.name if type_.target is not None else "char"
    if kind is not None and value.kind not in (None, kind):
        raise TypeError(f"{_named(where)}: expected a handle {kind!r}, found {value!r}")
    if value.kind is not None and not handle_types_match(handle, value):
        text = f"{_named(where)}: expected a handle of this library, found {value!r} of another"
        raise ValueError(text)
    return value.address


def assign(place: Handle, type_: CType, where: Any, value: Any) -> None:
    """Assign a struct, a union or an array, by its members or items."""
    if isinstance(value, Handle) and value.kind == place.kind and type_.members is not None:
        _copy(place, where, value)
    elif type_.members is not None:
        _assign_members(place, type_, where, value)
    else:
        _assign_items(place, type_, where, value)


def assign_whole(place: Handle, where: str, value: Any) -> None:
    """Assign all that a handle refers to: a struct, an array, a number or a pointer."""
    type_ = c_type_of(place)
    if type_.members is not None or type_.code[-1] == "]":
        assign(place, type_, where, value)
    else:
        place[0] = value


def assign_variable(place: Handle, name: str, value: Any) -> None:
    """Assign a variable of C, whose handle is `place`; the library keeps what it points to."""
    type_ = c_type_of(place)
    is_pointer = type_.code == "str" or (type_.code[0] in "*&" and type_.code[-1] != "]")
    if value is None or not is_pointer:
        assign_whole(place, name, value)
        return
    address, c_types(place).kept[name] = pointer_to(place, type_, name, value, True)
    _memory(place)[:] = address.to_bytes(8, "little")


def _memory(handle: Any) -> memoryview:
    """View the bytes of a handle; type checkers do not know that it has a buffer."""
    return memoryview(handle).cast("B")


def _copy(place: Handle, where: Any, value: Handle) -> None:
    if not handle_types_match(place, value):
        raise ValueError(f"{_named(where)}: expected a struct of this library, found {value!r}")
    _memory(place)[:] = _memory(value)


def _assign_members(place: Handle, type_: CType, where: Any, value: Any) -> None:
    names = list(type_.members or ())
    if isinstance(value, tuple | list) and len(value) == len(names):
        value = dict(zip(names, value, strict=True))
    if not isinstance(value, Mapping):
        text = f"{_named(where)}: expected a mapping or {len(names)} members, found {shown(value)}"
        raise TypeError(text)
    for name, item in value.items():
        place[name] = item


def _assign_items(place: Handle, type_: CType, where: Any, value: Any) -> None:
    item = type_.target.code if type_.target is not None else ""
    if item == "char" or (isinstance(value, str) and item in UNITS):
        _memory(place)[:] = _characters(where, value, type_.count, item)
        return
    try:
        count = -1 if isinstance(value, str | bytes | Mapping) else len(value)
    except TypeError:
        count = -1
    if count != type_.count:
        _refuse_count(where, value, type_.count, count)
    for i, item in enumerate(value):
        place[i] = _plain(item)


def _characters(where: Any, value: Any, count: int, item: str) -> bytes:
    """Return text as an array of `count` units of code `item`, which zeros follow."""
    if not isinstance(value, str | bytes):
        raise refused(f"char[{count}]", where, value)
    size, encoding, _ = UNITS.get(item, (1, "utf-8", "B"))
    try:
        data = encoded_text(value, str(where), encoding)
    except Refused as error:
        raise _of_member(error) from None
    if len(data) > count * size:
        _refuse_count(where, value, count, len(data) // size)
    return data.ljust(count * size, b"\0")


def _refuse_count(where: Any, value: Any, count: int, found: int) -> NoReturn:
    if found < 0:
        raise TypeError(f"{_named(where)}: expected {count} items, found {shown(value)}")
    raise ValueError(f"{_named(where)}: expected {count} items, found {found}")
