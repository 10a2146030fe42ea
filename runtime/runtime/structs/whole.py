"""Structs and unions whose bytes a function takes and returns, as handles that own them."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping

from .._core import CType, Handle, c_types, handle_allocate
from ..error import shown
from .arrays import has_dtype
from .layout import Refused
from .members import assign, values_of
from .memory import extended
from .packing import update

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .._core import Function


def handle_with(function: Function, type_: CType, value: Any, where: str) -> Handle:
    """Return a handle that owns a struct or union with these members, or with these bytes."""
    if type_.members is None:
        raise Refused(TypeError, f"expected a handle {type_.name!r} or None, found {shown(value)}")
    handle = handle_allocate(function, None, type_)
    view = memoryview(handle).cast("B")  # type: ignore[arg-type]
    if has_dtype(value) and value.dtype.names and value.size == 1:
        value = dict(zip(value.dtype.names, value.item(), strict=True))
    if not isinstance(value, bytes):
        try:
            assign(handle, type_, where, value)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise Refused(type(error), str(error.args[0])) from None
    elif len(value) == type_.size:
        view[:] = value
    else:
        raise Refused(
            ValueError, f"expected {type_.size} bytes of {type_.name!r}, found {len(value)}"
        )
    return handle


def packed_whole(
    function: Function, code: str, name: str, value: Any
) -> tuple[memoryview, tuple[Any, ...], Any]:
    """Return the bytes of a struct with a mapping's or tuple's values, as `packed` does."""
    types = c_types(function)
    type_: CType = types.type(f"{{{code.strip('=@{}')}}}")
    if code[0] == "@" and isinstance(value, Mapping):
        type_ = extended(types, type_, value)
    handle = handle_with(function, type_, value, name)
    view = memoryview(handle).cast("B")  # type: ignore[arg-type]
    before = bytes(view)

    def finish() -> None:
        if bytes(view) != before and isinstance(value, MutableMapping):
            for key, found in values_of(handle).items():
                update(value, key, found)

    return view, (handle,), finish if code[0] == "@" else None


def bytes_of(function: Function, name: str, value: Any) -> bytes:
    """Return the bytes of a struct that a callback returns."""
    if isinstance(value, Handle):
        if value.kind != name or value.closed:
            raise Refused(TypeError, f"expected a handle {name!r}, found {shown(value)}")
        return bytes(memoryview(value).cast("B"))  # type: ignore[arg-type]
    if not isinstance(value, Mapping | tuple | list | bytes):
        raise Refused(TypeError, f"expected a mapping or a tuple, found {shown(value)}")
    made = handle_with(function, c_types(function).type(f"{{{name}}}"), value, "result")
    return bytes(memoryview(made).cast("B"))  # type: ignore[arg-type]
