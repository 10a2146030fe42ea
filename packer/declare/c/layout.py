"""The place of each member in a struct or union, by the ABI's rules; the compiler confirms it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..declaration import Aggregate, Member
from .types import Array, CType, Declared, Function, Tagged

if TYPE_CHECKING:
    from .aggregate import Aggregates

_SIZES = {
    "bool": (1, 1),
    "char": (1, 1),
    "f16": (2, 2),
    "bf16": (2, 2),
    "c64": (8, 4),
    "c128": (16, 8),
    "longdouble": (16, 16),
}
_LARGEST = 16  # alignment
_ALIGNED = re.compile(
    r"\b(?:__aligned__|aligned) \( (\d{1,4}) \)|\b(?:_Alignas|alignas) (\d{1,4})(?![\w.])"
)
_OTHER_LAYOUT = re.compile(r"ms_struct|storage_order|randomize_layout|no_unique_address")


class LayoutError(Exception):
    """A struct whose fields cannot be given as values; the text is the reason."""


class Layout:
    """The members of one struct or union, placed one after the other."""

    def __init__(self, unit: Aggregates, type_: Tagged, name: str, spelling: str) -> None:
        if _OTHER_LAYOUT.search(type_.attributes):
            raise LayoutError(f"{spelling} has an attribute")
        self.unit = unit
        self.type = type_
        self.name, self.spelling = name, spelling
        self.most = alignment_limit(type_.attributes)
        self.members: list[Member] = []
        self.bits = self.end = 0  # of the next member, and of the largest one of a union
        self.alignment = max(1, alignment_of(type_.attributes))
        for member in type_.members or ():
            self.add(member)

    def aggregate(self) -> Aggregate:
        bits, alignment = max(self.bits, self.end), self.alignment
        size = -(-bits // (8 * alignment)) * alignment
        if not size or not self.members:
            raise LayoutError(f"{self.spelling} has no members")
        conditions = [f"sizeof({self.spelling}) == {size}"]
        conditions += [
            f"__builtin_offsetof({self.spelling}, {m.name}) == {m.offset}"
            for m in self.members
            if not m.width and m.name not in self.unit.scope.macros
        ]
        kind, members = self.type.kind, tuple(self.members)
        is_named = self.type.name == self.name
        aliases = tuple(self.unit.scope.typedefs_of(self.type)) if is_named else ()
        made = Aggregate(kind, self.name, size, self.alignment, members, tuple(conditions))
        return made._replace(aliases=aliases)

    def add(self, member: Declared) -> None:
        aligned, is_packed = alignment_of(member.attributes), "packed" in member.attributes
        is_placed = bool(aligned or is_packed)
        is_odd = is_placed and (member.bits or not member.name)
        if is_odd or member.storage or isinstance(member.type, Function):
            raise LayoutError(f"{self.spelling} has {member.name!r}, which is not a plain member")
        if member.bits:
            self.add_bits(member)
        elif member.name:
            spelled = f"(({self.spelling} *)0)->{member.name}"
            own = self.unit.member(member.type, f"{self.name}.{member.name}", spelled)
            offset = self.place(own[1], 1 if is_packed else own[2], aligned)
            self.members.append(Member(member.name, own[0], offset))
        elif isinstance(member.type, Tagged) and not member.type.tag:
            self.add_anonymous(member.type)
        if self.type.kind == "union":
            self.end, self.bits = max(self.end, self.bits), 0

    def add_anonymous(self, type_: Tagged) -> None:
        """Add the members of a struct or union without a name as own ones."""
        inner = Layout(self.unit, type_, self.name, self.spelling)
        made = inner.aggregate()
        start = self.place(made.size, made.alignment)
        self.members += [m._replace(offset=start + m.offset) for m in made.members]

    def place(self, size: int, alignment: int, least: int = 0) -> int:
        """Return the offset of a member, and advance."""
        needed = max(min(alignment, self.most), least)
        offset = -(-self.bits // (8 * needed)) * needed
        self.bits = 8 * (offset + size)
        self.alignment = max(self.alignment, needed)
        return offset

    def add_bits(self, member: Declared) -> None:
        """Place a bit-field: it does not cross a boundary of its type (System V ABI)."""
        code, size, alignment = self.unit.member(member.type, "", "")
        width = self.unit.scope.extent(member.bits)
        is_integer = code == "bool" or code[0] in "iuc"
        named = f"the bit-field {member.name!r}" if member.name else "a bit-field without a name"
        if (
            width is None
            or not 0 <= width <= 8 * size
            or not is_integer
            or size > 8
            or self.most < 16
        ):
            raise LayoutError(f"{self.spelling} has {named}")
        if not member.name and alignment > self.alignment:  # machines differ
            raise LayoutError(f"{self.spelling} has {named}")
        unit = 8 * size
        if not width or self.bits // unit != (self.bits + width - 1) // unit:
            self.bits = -(-self.bits // unit) * unit
        if member.name:
            offset = self.bits // unit * size
            self.alignment = max(self.alignment, alignment)
            self.members.append(Member(member.name, code, offset, self.bits % unit, width))
        self.bits += width


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


def alignment_of_code(code: str) -> int:
    """Return the alignment of a number or pointer by its code."""
    return 8 if code[0] in "*&@" or code == "str" else size_of_number(code)[1]


def extents_of(item: CType) -> tuple[list[tuple[str, ...]], CType]:
    """Return the extents of an array of arrays, outermost first, and the type of its items."""
    extents = []
    while isinstance(item, Array):
        extents.append(item.extent)
        item = item.item
    return extents, item
