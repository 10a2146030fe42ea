"""Symbol tables, kept as bytes; a symbol is decoded when it is read.

A look-up by name searches the string table, not the symbols: a library may have a million.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress, islice
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar, overload

from runtime.elf import occurrences

from . import structures as elf
from .structures import SymbolEntry, layout_of

if TYPE_CHECKING:
    from .section_table import Section

Item = TypeVar("Item")
_ENTRY = layout_of(SymbolEntry)
_MAX_NAME, _MAX_PREFIX = 65_536, 256
_MANY = 10_000

_CODE = (0, elf.STT_FUNC, elf.STT_GNU_IFUNC)
_IFUNC_INFO = re.compile(rb"[\x0a\x1a\x2a\xaa]")  # STT_GNU_IFUNC with each bind of ST_BINDS


class Symbol(NamedTuple):
    """One symbol; bytes of its name that are not UTF-8 become hex escapes."""

    name: str
    defined: bool
    size: int
    type: str
    bind: str
    version: str | None
    address: int
    visibility: str = "DEFAULT"
    section: str = "UND"  # ``"UND"``, ``"ABS"``, ``"COM"``, or the number of its section
    default_version: bool = False  # True if a reference without a version is bound to it (``@@``)


class Decoded(Sequence[Item]):
    """A sequence whose items are decoded from bytes when they are read."""

    @abstractmethod
    def decode(self, indices: Iterable[int]) -> Iterator[Item]:
        """Decode the items at some indices, all inside the sequence."""

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return list(self.decode(range(len(self))[index]))
        return next(self.decode([range(len(self))[index]]))

    def __iter__(self) -> Iterator[Item]:
        return self.decode(range(len(self)))


class SymbolTable(Decoded[Symbol]):
    """A symbol table without its null symbol, in file order.

    It owns its bytes, so a change of the file does not affect it. `entries` begin with the null
    symbol's; `versions` has a u16 for each, which `version_names` explains. `sections` name the
    symbols of type SECTION.
    """

    def __init__(
        self,
        entries: bytes = b"",
        strings: bytes = b"",
        versions: bytes = b"",
        version_names: Mapping[int, str] | None = None,
        sections: Sequence[Section] = (),
    ) -> None:
        self._entries = entries[: len(entries) // _ENTRY.size * _ENTRY.size]
        self._strings = strings
        self._versions = versions
        self._version_names = version_names or {}
        self._sections = sections

    def __len__(self) -> int:
        return max(len(self._entries) // _ENTRY.size - 1, 0)

    def decode(self, indices: Iterable[int]) -> Iterator[Symbol]:
        """Decode symbols; index 0 is the first after the null symbol."""
        return self._decode(index + 1 for index in indices)

    def count_defined(self) -> int:
        """Return how many symbols the file defines."""
        return len(self) - self._column("H", 3, 12)[1:].count(0)

    def find(self, name: str) -> Symbol | None:
        """Find the defined symbol of this name."""
        return next(self._named(name.encode() + b"\0"), None)

    def beginning_with(self, prefix: str) -> Iterator[Symbol]:
        """Find the defined symbols whose names begin with a prefix, in file order."""
        return self._named(prefix.encode())

    def ending_with(self, suffix: str) -> Iterator[Symbol]:
        """Find the defined symbols whose names end with, but are not, a suffix, in file order."""
        starts = set[int]()
        for at in islice(occurrences(self._strings, suffix.encode() + b"\0"), _MANY):
            begin = max(self._strings.rfind(b"\0", 0, at) + 1, at - _MAX_PREFIX)
            starts.update(range(begin, at))
        return self._decode(i for i in self._among(self._names, starts) if self._is_defined(i))

    def at_addresses(self, addresses: set[int]) -> Iterator[Symbol]:
        """Find the functions that begin at one of the addresses.

        Mapping symbols (``$x``, ``$d``; ELF for the Arm 64-bit Architecture, 5.5.1) are left out:
        they mark where code begins among data.
        """
        at = self._among(self._column("Q", 1, 3), addresses)
        found = self._decode(i for i in at if self._is_defined(i) and self._type(i) in _CODE)
        return (s for s in found if s.type != "NOTYPE" or not s.name.startswith("$"))

    def ifuncs(self) -> Iterator[Symbol]:
        """Find the functions whose address a resolver returns at load time."""
        found = _IFUNC_INFO.finditer(self._entries[4 :: _ENTRY.size], 1)
        return self._decode(m.start() for m in found if self._is_defined(m.start()))

    def _named(self, start: bytes) -> Iterator[Symbol]:
        """Names may share their ends, so one name may begin inside another."""
        offsets = set(islice(occurrences(self._strings, start), _MANY))
        if len(offsets) < _MANY:
            found = self._among(self._names, offsets) if offsets else iter(())
        else:  # symbol by symbol, as far as the caller iterates
            is_start = self._strings.startswith
            found = (i for i, at in enumerate(self._names) if i and is_start(start, at))
        return self._decode(index for index in found if self._is_defined(index))

    @cached_property
    def _names(self) -> list[int]:
        return self._column("I", 0, 6)

    def _column(self, code: Literal["H", "I", "Q"], start: int, step: int) -> list[int]:
        """One field of all entries, the null symbol's first, read as words of one width."""
        words: memoryview[int] = memoryview(self._entries).cast(code)
        return words[start::step].tolist()

    def _among(self, column: list[int], wanted: set[int]) -> Iterator[int]:
        """The indices at which a column holds one of the values, except the null symbol's."""
        found = compress(range(len(column)), map(wanted.__contains__, column))
        return (index for index in found if index)

    def _type(self, index: int) -> int:
        return self._entries[index * _ENTRY.size + 4] & 15

    def _is_defined(self, index: int) -> bool:
        at = index * _ENTRY.size + 6
        return self._entries[at : at + 2] != b"\0\0"

    def _decode(self, indices: Iterable[int]) -> Iterator[Symbol]:
        # Names may share their ends; the budget stops a small table from expanding to gigabytes.
        budget = 4 * len(self._strings) + (1 << 20)
        for index in indices:
            start, info, other, section, address, size = _ENTRY.unpack_from(
                self._entries, index * _ENTRY.size
            )
            name = self._name(start, min(budget, _MAX_NAME))
            budget -= len(name)
            if not start and info & 15 == elf.STT_SECTION and section < len(self._sections):
                name = self._sections[section].name
            version, default = self._version(index) if self._version_names else (None, False)
            if version == name:  # linkers define a symbol for each version
                version, default = None, False
            yield Symbol(
                name,
                section != 0,
                size,
                elf.ST_TYPES.get(info & 15) or f"<{info & 15}>",
                elf.ST_BINDS.get(info >> 4) or f"<{info >> 4}>",
                version,
                address,
                elf.ST_VISIBILITIES[other & 3],
                elf.ST_SECTIONS.get(section) or str(section),
                default and section != 0,
            )

    def _name(self, start: int, limit: int) -> str:
        end = self._strings.find(b"\0", start, start + limit)
        name = self._strings[start : end if end >= 0 else start + limit]
        return name.decode("utf-8", "backslashreplace")

    def _version(self, index: int) -> tuple[str | None, bool]:
        if (index + 1) * 2 > len(self._versions):
            return None, False
        number = int.from_bytes(self._versions[index * 2 : index * 2 + 2], "little")
        name = self._version_names.get(number & ~elf.VERSYM_HIDDEN)
        return name, name is not None and not number & elf.VERSYM_HIDDEN
