"""Constructors: the code that a load runs before any call."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from struct import Struct
from typing import TYPE_CHECKING

from runtime import elf

from ..machine import BY_NUMBER, Relocations
from .report import Constructor, Symbols

if TYPE_CHECKING:
    from ..elf.dynamic import Dynamic
    from ..elf.image import Image

_WORD = Struct("<Q")
_MAX_LISTED = 4096
_UNKNOWN = Relocations(-1, -1, -1)


def read_constructors(image: Image, dynamic: Dynamic, symbols: Symbols) -> tuple[Constructor, ...]:
    """List the constructors in the order in which a load runs them, then resolvers of IFUNCs.

    Linkers add a few to every library (``_init``, ``frame_dummy``). They are listed too, since a
    name proves nothing.
    """
    found: list[Constructor] = []
    if init := image.value(elf.DT_INIT):
        found.append(Constructor("init", init, None))
    with image.reading():
        found.extend(_read_init_array(image, dynamic))
    with image.reading():
        found.extend(islice(_read_resolvers(image, dynamic), _MAX_LISTED))
    ifuncs = islice(symbols.dynamic.ifuncs(), _MAX_LISTED)
    found.extend(Constructor("ifunc", symbol.address, symbol.name) for symbol in ifuncs)
    if len(found) > _MAX_LISTED:
        image.problems.append(f"constructors: more than {_MAX_LISTED}, expected at most that many")
    return tuple(_named(_unique(found)[:_MAX_LISTED], symbols))


def _read_init_array(image: Image, dynamic: Dynamic) -> Iterator[Constructor]:
    """Return the values of DT_INIT_ARRAY after relocation; in the file they may be zeros."""
    start = image.value(elf.DT_INIT_ARRAY)
    data = image.table(elf.DT_INIT_ARRAY, elf.DT_INIT_ARRAYSZ, "DT_INIT_ARRAY")
    if not data:
        return
    types = _relocations_of(image)
    places = range(start, start + len(data) // 8 * 8, 8)[: _MAX_LISTED + 1]
    relocated = {p: (info, addend) for p, info, addend in dynamic.relocations(places=places)}
    for place in places:
        info, addend = relocated.get(place, (None, 0))
        if info is None:  # a packed relocation (DT_RELR), or none: the file has the value
            (address,) = _WORD.unpack_from(data, place - start)
            yield Constructor("init_array", address, None)
        elif info & 0xFFFFFFFF == types.absolute and 0 < info >> 32 <= len(dynamic.symbols):
            symbol = dynamic.symbols[(info >> 32) - 1]
            yield Constructor("init_array", symbol.address + addend, symbol.name)
        else:
            yield Constructor("init_array", addend, None)


def _read_resolvers(image: Image, dynamic: Dynamic) -> Iterator[Constructor]:
    types = _relocations_of(image)
    for _, _, addend in dynamic.relocations(number=types.irelative):
        yield Constructor("ifunc", addend, None)


def _relocations_of(image: Image) -> Relocations:
    machine = BY_NUMBER.get(image.machine_number)
    return machine.relocations if machine is not None else _UNKNOWN


def _unique(found: list[Constructor]) -> list[Constructor]:
    """A resolver with a symbol and a relocation appears twice; keep the one with a name."""
    named = {(c.kind, c.address) for c in found if c.name is not None}
    return [c for c in found if c.name is not None or (c.kind, c.address) not in named]


def _named(found: list[Constructor], symbols: Symbols) -> Iterator[Constructor]:
    addresses = {c.address for c in found if c.name is None}
    names: dict[int, str] = {}
    for table in (symbols.static, symbols.dynamic):
        for symbol in table.at_addresses(addresses) if addresses else ():
            names.setdefault(symbol.address, symbol.name)
    for c in found:
        yield c if c.name is not None else Constructor(c.kind, c.address, names.get(c.address))
