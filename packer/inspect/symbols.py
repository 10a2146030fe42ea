"""Symbol tables: read as bytes, decoded one symbol at a time when they are listed."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from struct import Struct
from typing import NamedTuple, overload

# Elf64_Sym (gABI): st_name, st_info, st_other, st_shndx, st_value, st_size.
ENTRY = Struct("<IBBHQQ")
_VERSION = Struct("<H")
_MAX_NAME = 65_536

# st_info, as readelf writes it.
_TYPES = {0: "NOTYPE", 1: "OBJECT", 2: "FUNC", 3: "SECTION", 4: "FILE", 5: "COMMON", 6: "TLS"}
_TYPES |= {10: "IFUNC"}
_BINDS = {0: "LOCAL", 1: "GLOBAL", 2: "WEAK", 10: "UNIQUE"}

_Entry = tuple[int, int, int, int, int, int]


class Symbol(NamedTuple):
    """One symbol; bytes of its name that are not UTF-8 are written as hex escapes."""

    name: str
    defined: bool
    size: int
    type: str
    bind: str
    version: str | None
    address: int


class SymbolTable(Sequence[Symbol]):
    """A symbol table without its null symbol, in file order.

    Parameters
    ----------
    entries, strings : bytes
        The table from its null symbol on, and its string table.
    versions : bytes
        A u16 for each symbol, or nothing.
    version_names : dict of int to str
        What they mean.

    Notes
    -----
    It is made of copies, so it stays what it is when the file changes. To make it costs no
    time per symbol.
    """

    def __init__(
        self,
        entries: bytes = b"",
        strings: bytes = b"",
        versions: bytes = b"",
        version_names: dict[int, str] | None = None,
    ) -> None:
        self._entries = entries[: len(entries) // ENTRY.size * ENTRY.size]
        self._strings = strings
        self._versions = versions
        self._version_names = version_names or {}

    def __len__(self) -> int:
        return max(len(self._entries) // ENTRY.size - 1, 0)

    @overload
    def __getitem__(self, index: int) -> Symbol: ...
    @overload
    def __getitem__(self, index: slice) -> list[Symbol]: ...
    def __getitem__(self, index: int | slice) -> Symbol | list[Symbol]:
        if isinstance(index, slice):
            return list(self._decode(range(len(self))[index]))
        return next(self._decode([range(len(self))[index]]))

    def __iter__(self) -> Iterator[Symbol]:
        return self._decode(range(len(self)))

    def count_defined(self) -> int:
        """How many symbols this object defines."""
        return sum(1 for _, _, _, section, _, _ in self._raw() if section)

    def find(self, name: str) -> Symbol | None:
        """Find the symbol of this name that the object defines."""
        whole, named = name.encode() + b"\0", self._strings.startswith
        return next(self._select(lambda entry: named(whole, entry[0]) and entry[3] != 0), None)

    def beginning_with(self, prefix: str) -> Iterator[Symbol]:
        """Find the defined symbols whose names begin so, in file order."""
        start, named = prefix.encode(), self._strings.startswith
        return self._select(lambda entry: named(start, entry[0]) and entry[3] != 0)

    def at_addresses(self, addresses: set[int]) -> Iterator[Symbol]:
        """Find the functions that begin at one of the addresses."""
        return self._select(
            lambda entry: entry[4] in addresses and entry[3] != 0 and entry[1] & 15 in (0, 2, 10)
        )

    def ifuncs(self) -> Iterator[Symbol]:
        """Find the functions whose address a resolver of this object gives at load time."""
        return self._select(lambda entry: entry[1] & 15 == 10 and entry[3] != 0)

    def _raw(self) -> Iterator[_Entry]:
        return itertools.islice(ENTRY.iter_unpack(self._entries), 1, None)

    def _select(self, wanted: Callable[[_Entry], bool]) -> Iterator[Symbol]:
        return self._decode(i for i, entry in enumerate(self._raw()) if wanted(entry))

    def _decode(self, indices: Sequence[int] | Iterator[int]) -> Iterator[Symbol]:
        # Names may share their ends, but not make gigabytes of a small string table.
        budget = 4 * len(self._strings) + (1 << 20)
        for index in indices:
            entry = ENTRY.unpack_from(self._entries, (index + 1) * ENTRY.size)
            start, info, _, section, address, size = entry
            name = self._name(start, min(budget, _MAX_NAME))
            budget -= len(name)
            kind = _TYPES.get(info & 15, f"<{info & 15}>")
            bind = _BINDS.get(info >> 4, f"<{info >> 4}>")
            version = self._version(index + 1)
            if version == name:  # it stands for the version itself, as linkers define one for each
                version = None
            yield Symbol(name, section != 0, size, kind, bind, version, address)

    def _name(self, start: int, limit: int) -> str:
        end = self._strings.find(b"\0", start, start + limit)
        name = self._strings[start : end if end >= 0 else start + limit]
        return name.decode("utf-8", "backslashreplace")

    def _version(self, index: int) -> str | None:
        if not self._version_names or (index + 1) * 2 > len(self._versions):
            return None
        (number,) = _VERSION.unpack_from(self._versions, index * 2)
        return self._version_names.get(number & 0x7FFF)  # the top bit hides it (LSB)
