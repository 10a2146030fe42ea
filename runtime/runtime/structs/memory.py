"""`new`: memory for a struct, which its handle owns."""

from __future__ import annotations

import re

from .._core import c_types, handle_allocate, handle_new
from ..error import near_names, shown
from .record import array_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .._core import CType, Handle
    from ..module import Module
    from .record import Types

_NAME = re.compile(
    r"\s*(?:(?:struct|union)\s+)?([A-Za-z_$][\w$. ]*?)\s*(\*[*\s]*)?(?:\[\s*(\d+)\s*\])?\s*"
)
# The codes of C's own names of numbers, and of void.
_WORDS = {
    "void": "void", "int": "i32", "unsigned": "u32", "unsigned int": "u32", "long": "i64",
    "unsigned long": "u64", "size_t": "u64", "short": "i16", "unsigned short": "u16",
    "signed char": "i8", "unsigned char": "u8", "long long": "i64", "unsigned long long": "u64",
    "_Bool": "bool", "double _Complex": "c128", "float _Complex": "c64",
}  # fmt: skip


def new(model: Module, type: str, members: Mapping[str, Any] | None = None, /, **more: Any) -> Any:
    """Allocate a struct, a union or an array of them, zeroed, for the functions of a library.

    Parameters
    ----------
    model : Module
        The loaded library whose functions use the struct.
    type : str
        The type in C: ``"struct image"``, the name of a typedef, ``"struct image[8]"``,
        ``"double[3]"``, or pointers for a function to write: ``"char *"``, ``"struct image *[2]"``.
    members : mapping of str to object
        Values of members; names that Python cannot spell are possible here.
    **more
        Values of further members.

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
    handle = handle_new(model, type)
    if handle is None:
        handle = _allocated(model, type)
    if members or more:
        for name, value in {**(members or {}), **more}.items():
            handle[name] = value
    return handle


def _allocated(model: Module, type: str) -> Handle:
    """Allocate memory for a type of which the text may have ``struct``, stars or an extent."""
    library = getattr(model, "_library", None)
    if library is None:
        raise TypeError(f"new: expected a loaded library, found {shown(model)}; load() returns one")
    types = c_types(library)
    found = (types.get(type) if isinstance(type, str) else None) or _named(types, type)
    return handle_allocate(library, model, found)


def _named(types: Types, type: str) -> CType:
    """Return the type of a text with ``struct``, stars or an extent, and remember it."""
    match = _NAME.fullmatch(type) if isinstance(type, str) else None
    word = _WORDS.get(match[1], match[1]) if match else ""
    found = types.type(word) if word in _WORDS.values() else types.get(word)
    stars = (match[2] or "").count("*") if match else 0
    if match is None or found is None or (found.size == 0 and not stars):
        structs = [name for name, known in types.items() if known.members is not None]
        text = f"new: expected a struct that functions of the library use, found {shown(type)}"
        raise ValueError(text + near_names(match[1] if match else "", structs))
    if stars:
        found = types.type("*" * stars + found.code)
    if match[3] is not None:
        return array_of(found, int(match[3]))
    types[type] = found
    return found
