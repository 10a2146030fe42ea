"""Memory of C as handles: `new` allocates it, `cast` names the type of what is there."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .._core import CType, Handle, c_types, c_value, handle_allocate, handle_new
from ..error import near_names, shown
from .members import assign_whole
from .record import OWN_NAMES, array_of, opaque, pointer_to_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..module import Module
    from .record import Types

_NAME = re.compile(
    r"\s*(?:(?:struct|union)\s+)?([A-Za-z_$][\w$. ]*?)\s*(\*[*\s]*)?((?:\[\s*\d+\s*\]\s*)*)"
)
# The codes of C's own names of numbers, by their words in order without int and signed.
_WORDS = {
    "void": "void", "": "i32", "unsigned": "u32", "long": "i64", "long unsigned": "u64",
    "size_t": "u64", "ssize_t": "i64", "intptr_t": "i64", "uintptr_t": "u64", "ptrdiff_t": "i64",
    "short": "i16", "short unsigned": "u16", "char signed": "i8", "char unsigned": "u8",
    "long long": "i64", "long long unsigned": "u64", "_Bool": "bool", "_Complex double": "c128",
    "_Complex float": "c64", "wchar_t": "i32", "char16_t": "u16", "char32_t": "u32",
}  # fmt: skip


def new(model: Module, type: str, members: Any = None, /, **more: Any) -> Any:
    """Allocate a struct, a union, a number or an array of them, zeroed, for a library's functions.

    Parameters
    ----------
    model : Module
        The loaded library whose functions use the struct.
    type : str
        The type in C: ``"struct image"``, the name of a typedef, ``"struct image[8]"``,
        ``"double[3][3]"``, or pointers for a function to write: ``"int *"``, ``"double *[2]"``.
    members : object
        The value: a mapping of members, whose names may be such that Python cannot spell; the
        items of an array, text for ``"char[10]"``; a number.
    **more
        Values of further members. A last member of unknown length, ``double x[]``, gets as many
        items as its value has.

    Returns
    -------
    Handle
        A handle that owns the memory: it is freed with the last handle, view or NumPy array of it.
        A pointer that is assigned keeps what it refers to.

    Raises
    ------
    ValueError
        If the library has no layout of this type.
    AttributeError, TypeError, ValueError, OverflowError
        If a member does not exist or cannot have its value.

    Examples
    --------
    >>> image = runtime.new(model, "struct image", width=3)  # doctest: +SKIP
    >>> image.width  # doctest: +SKIP
    3
    """
    handle = handle_new(model, type) if not more else None
    if handle is None:
        library = _library(model, "new")
        types = c_types(library)
        found = _type(types, type, "new")
        if found.size == 0:
            raise ValueError(f"new: expected a type of known size, found {shown(type)}")
        handle = handle_allocate(library, model, extended(types, found, more))
    if more:
        members = {**(members or {}), **more}
    if members is not None:
        assign_whole(handle, type, members)
    return handle


def cast(model: Module, type: str, pointer: Handle | int, /) -> Any:
    """Return a handle of another type for what a handle points to, or for an address.

    Parameters
    ----------
    model : Module
        The loaded library whose functions use the type.
    type : str
        The type in C of what is there, as of `new`: ``"struct event"``, ``"double[3]"``.
    pointer : Handle or int
        The handle, which the new one keeps alive; or the address. The type is not checked.

    Returns
    -------
    Handle
        A handle that releases nothing; None for NULL.

    Raises
    ------
    TypeError
        If `pointer` is neither a handle nor an int.
    ValueError
        If the handle is closed, or the library has no layout of this type.

    Examples
    --------
    >>> event = runtime.cast(model, "struct key_event", event)  # doctest: +SKIP
    """
    library = _library(model, "cast")
    found = _type(c_types(library), type, "cast")
    if isinstance(pointer, Handle):
        if pointer.closed:
            raise ValueError(f"cast: expected an open handle, found {pointer!r}")
        return _pointed(pointer, found, pointer.address)
    if not isinstance(pointer, int) or not 0 <= pointer < 1 << 64:
        raise TypeError(f"cast: expected a handle or an address, found {shown(pointer)}")
    return _pointed(handle_allocate(library, model, opaque(None)), found, pointer)


def handle_to(model: Module, code: str, address: int, is_const: bool, size: int) -> Handle:
    """Return a handle of a variable; an extent that is not known follows from the `size`."""
    library = _library(model, "globals")
    types = c_types(library)
    if size:
        item = types.type(code.replace("[]", "", 1))
        code = code.replace("[]", f"[{size // (item.size or 1)}]", 1)
    anchor = handle_allocate(library, model, opaque(None))
    made: Handle = _pointed(anchor, types.type(code), address, is_const)
    return made


def _pointed(parent: Handle, type_: CType, address: int, is_const: bool = False) -> Any:
    pointer = pointer_to_type(type_, f"*{type_.code}", is_const)
    return c_value(parent, pointer, address.to_bytes(8, "little"))


def _library(model: Module, caller: str) -> Any:
    library = getattr(model, "_library", None)
    if library is None:
        text = f"{caller}: expected a loaded library, found {shown(model)}"
        raise TypeError(f"{text}; load() returns one")
    return library


def _type(types: Types, type: str, caller: str) -> CType:
    """Return the type of a text with ``struct``, stars or extents, and remember it."""
    known = types.get(type) if isinstance(type, str) else None
    if known is not None:
        return known
    match = _NAME.fullmatch(type) if isinstance(type, str) else None
    name = match[1] if match else ""
    words = " ".join(
        sorted(w for w in name.split() if w not in ("int", "signed") or "char" in name)
    )
    code = _WORDS.get(words if name else "?", "")
    found = types.type(code) if code else types.get(name)
    stars = (match[2] or "").count("*") if match else 0
    if match is None or found is None:
        structs = [name for name, known in types.items() if known.code[0] in "{@"]
        text = f"{caller}: expected a struct that functions of the library use, found {shown(type)}"
        text += near_names(name, structs)
        raise ValueError(f"{text}; for a typedef of a number name the number, as in 'unsigned int'")
    if stars:
        stars -= found.size == 0 and found.code[0] == "@"  # the code of a pointer to it
        found = types.type("*" * stars + found.code)
    for extent in reversed(re.findall(r"\d+", match[3])):
        found = array_of(found, int(extent))
    if not match[3]:
        types[type] = found
    return found


def extended(types: Types, type_: CType, values: Mapping[str, Any]) -> CType:
    """Return a struct whose last member, an array of unknown length, has the items of its value."""
    members = types.members.get(type_.name or "") if type_.members is not None else None
    name, code, offset, *_ = members[-1] if members else ("", "", 0)
    item = types.type(code).target if "[0]" in code else None
    value: Any = values.get(name)
    if members is None or item is None or not hasattr(value, "__len__"):
        return type_
    code = code.replace("[0]", f"[{len(value)}]", 1)
    size = max(type_.size, offset + types.type(code).size)
    made = CType(type_.name, type_.code, "{", size, format=type_.format, alignment=type_.alignment)
    made.set_members(types.places([*members[:-1], (name, code, offset, 0, 0)]), OWN_NAMES)
    return made
