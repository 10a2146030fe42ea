"""The layout of structs by the natural rules of the ABI, which the compiler then confirms."""

from __future__ import annotations

import re
from collections.abc import Callable

from ..declaration import Field, Struct
from .types import Array, CType, Tagged

_SIZES = {
    "bool": (1, 1),
    "char": (1, 1),
    "f16": (2, 2),
    "bf16": (2, 2),
    "c64": (8, 4),
    "c128": (16, 8),
    "longdouble": (16, 16),
}
_POINTER = (8, 8)
_LARGEST = 16  # alignment
_ALIGNED = re.compile(
    r"\b(?:__aligned__|aligned) \( (\d{1,4}) \)|\b(?:_Alignas|alignas) (\d{1,4})(?![\w.])"
)


class LayoutError(Exception):
    """A struct whose fields cannot be given as values; the text is the reason."""


def layout_of(
    type_: Tagged, field_code: Callable[[Tagged], list[tuple[str, str]]], structs: dict[str, Struct]
) -> Struct:
    """Compute the layout of a struct, from the names and codes of its fields.

    Raises LayoutError if the layout is not the natural one.
    """
    if "lign" in type_.attributes:
        raise LayoutError(f"{type_.spelling} has an attribute of alignment")
    most = alignment_limit(type_.attributes)
    return _placed(type_.name, type_.spelling, field_code(type_), most, structs)


def alignment_limit(attributes: str) -> int:
    """Return the largest alignment of a field in a struct with these attributes."""
    pack = re.search(r"pack=(\d+)", attributes)
    return 1 if "packed" in attributes else int(pack[1]) if pack else _LARGEST


def alignment_of(attributes: str) -> int:
    """Return the alignment that attributes ask for, or 0; raise LayoutError if it is unknown."""
    found = _ALIGNED.findall(attributes)
    if attributes.count("lign") != len(found):
        raise LayoutError("an alignment of unknown value")
    return max((int(first or second) for first, second in found), default=0)


def size_of_number(code: str) -> tuple[int, int]:
    """Return size and alignment of a number by its code."""
    return _SIZES.get(code) or (int(code[1:]) // 8,) * 2


def is_natural(struct: Struct, structs: dict[str, Struct]) -> bool:
    """Return True if neither a struct nor one in it is packed."""
    inner = [structs[f.code[1:].split("}")[0]] for f in struct.fields if f.code[0] == "{"]
    fields = [(field.name, field.code) for field in struct.fields]
    natural = _placed(struct.name, struct.spelling, fields, _LARGEST, structs)
    return struct == natural and all(is_natural(other, structs) for other in inner)


def _placed(
    name: str, spelling: str, codes: list[tuple[str, str]], most: int, structs: dict[str, Struct]
) -> Struct:
    """Place fields one after the other, each aligned by `most` bytes at the most."""
    offset, alignment = 0, 1
    fields = []
    for field, code in codes:
        size, needed = _size_of(code, structs)
        needed = min(needed, most)
        offset = -(-offset // needed) * needed
        fields.append(Field(field, code, offset))
        offset += size
        alignment = max(alignment, needed)
    size = -(-offset // alignment) * alignment
    return Struct(name, spelling, size, alignment, tuple(fields))


def _size_of(code: str, structs: dict[str, Struct]) -> tuple[int, int]:
    """Return size and alignment of a field by its code."""
    if code[0] in "*&@" or code == "str":
        return _POINTER
    item, *extents = code.replace("]", "").split("[")
    if item[0] == "{":
        struct = structs[item[1:-1]]
        size, alignment = struct.size, struct.alignment
    else:
        size, alignment = size_of_number(item)
    for extent in extents:
        size *= int(extent)
    return size, alignment


def extents_of(item: CType) -> tuple[list[tuple[str, ...]], CType]:
    """Return the extents of an array of arrays, outermost first, and the type of its items."""
    extents = []
    while isinstance(item, Array):
        extents.append(item.extent)
        item = item.item
    return extents, item
