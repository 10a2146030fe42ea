"""The variables of an object that all levels share: those with external linkage."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from ..elf import structures as elf

if TYPE_CHECKING:
    from ..elf.object_edit import EditedObject, Relocation
    from ..elf.structures import SymbolEntry

# By section the (start, end, name) of each shared variable, in order.
Places = dict[int, list[tuple[int, int, str]]]

_SHN_COMMON = 0xFFF2
_MOST_TEXT = 256  # of a constant that an initial value refers to


class Variable(NamedTuple):
    """A variable as one level has it."""

    nbytes: int
    data: bytes  # its initial value without addresses; empty if it is zero
    # The (offset, name or bytes) of each address in it: of a symbol, or of a constant.
    addresses: tuple[tuple[int, str | bytes], ...]
    alignment: int  # the alignment that its place has in its object
    offset: int  # the place in its section
    is_hidden: bool  # True if compilers may rely on the alignment that they gave it


def shared_data(found: EditedObject) -> Iterator[tuple[int, str, SymbolEntry]]:
    """Iterate over the variables that an object shares: index, name and symbol of each."""
    for index, name, symbol in found.globals():
        if symbol.st_shndx != elf.SHN_UNDEF and not found.is_code(symbol):
            yield index, name, symbol


def places_of(found: EditedObject) -> Places:
    """Return where shared variables are."""
    places: Places = {}
    for _, name, symbol in shared_data(found):
        if found.section_of(symbol) is not None:
            place = (symbol.st_value, symbol.st_value + max(symbol.st_size, 1), name)
            places.setdefault(symbol.st_shndx, []).append(place)
    for rows in places.values():
        rows.sort()
    return places


def variable_at(places: Places, relocation: Relocation) -> str | None:
    """Return the shared variable whose initial value a relocation changes, or None."""
    rows = places.get(relocation.section, [])
    index = bisect_right(rows, relocation.offset, key=itemgetter(0)) - 1
    return rows[index][2] if index >= 0 and relocation.offset < rows[index][1] else None


def variables_of(found: EditedObject) -> dict[str, Variable]:
    """Return the shared variables by name."""
    places, addresses = places_of(found), dict[str, list[tuple[int, str | bytes]]]()
    starts = {name: start for rows in places.values() for start, _, name in rows}
    for relocation in found.relocations():
        if name := variable_at(places, relocation):
            row = (relocation.offset - starts[name], _target(found, relocation))
            addresses.setdefault(name, []).append(row)
    return {
        name: _variable(found, symbol, tuple(sorted(addresses.get(name, ()), key=itemgetter(0))))
        for _, name, symbol in shared_data(found)
    }


def _variable(
    found: EditedObject, symbol: SymbolEntry, addresses: tuple[tuple[int, str | bytes], ...]
) -> Variable:
    section, data, offset = found.section_of(symbol), b"", symbol.st_value
    if section is None:  # a COMMON symbol, whose value is its alignment
        alignment, offset = max(symbol.st_value, 1), 0
    else:
        alignment = _alignment(max(section.sh_addralign, 1), symbol.st_value)
        if section.sh_type != elf.SHT_NOBITS:
            start = section.sh_offset + symbol.st_value
            data = bytes(found.data[start : start + symbol.st_size]).rstrip(b"\0")
    is_hidden = symbol.st_other & 3 != elf.STV_DEFAULT
    return Variable(symbol.st_size, data, addresses, alignment, offset, is_hidden)


def _alignment(of_section: int, offset: int) -> int:
    return min(of_section, offset & -offset) if offset else of_section


def _target(found: EditedObject, relocation: Relocation) -> str | bytes:
    """Return the name of a symbol, or the text at a place without a name."""
    symbol, name = found.symbols[relocation.symbol], found.names[relocation.symbol]
    section = found.section_of(symbol)
    if section is None or symbol.st_info >> 4 != elf.STB_LOCAL:
        return name
    _, _, addend = elf.RELOCATION.unpack_from(found.data, relocation.at)
    start = section.sh_offset + symbol.st_value + addend
    text = bytes(found.data[start : min(start + _MOST_TEXT, section.sh_offset + section.sh_size)])
    return text.partition(b"\0")[0]


def difference(lowest: dict[str, Variable], other: dict[str, Variable]) -> str:
    """Say which variable cannot be one object for two levels; empty if all can."""
    for name, variable in other.items():
        if (first := lowest.get(name)) is None:
            continue
        if first[:3] != variable[:3]:
            return f"its variable {name} differs from level to level"
        is_placed = first.alignment >= variable.alignment or first.offset % variable.alignment == 0
        if variable.is_hidden and not is_placed:
            return f"its variable {name} is aligned otherwise at each level"
    return ""


def align_variables(objects: Sequence[EditedObject]) -> None:
    """Give the variables of the first object the alignment that they have in the others.

    Compilers align a hidden array to their vectors, and use aligned instructions then.
    """
    lowest = objects[0]
    needed: dict[str, int] = {}
    for found in objects[1:]:
        for name, variable in variables_of(found).items():
            needed[name] = max(needed.get(name, 1), variable.alignment)
    for index, name, symbol in list(shared_data(lowest)):
        alignment, section = needed.get(name, 1), lowest.section_of(symbol)
        if symbol.st_shndx == _SHN_COMMON:
            value = max(symbol.st_value, alignment)
            lowest.symbols[index] = symbol._replace(st_value=value)
        elif section is not None and symbol.st_value % alignment == 0:
            raised = section._replace(sh_addralign=max(section.sh_addralign, alignment))
            lowest.sections[symbol.st_shndx] = raised
