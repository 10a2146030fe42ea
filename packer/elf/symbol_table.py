"""Symbol tables: read as bytes, decoded one symbol at a time when they are listed.

To look a name up, the string table is searched, not each symbol: a library may have a million.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress, islice
from struct import Struct
from typing import Literal, NamedTuple, overload

# Elf64_Sym (gABI): st_name, st_info, st_other, st_shndx, st_value, st_size.
ENTRY = Struct("<IBBHQQ")
_VERSION = Struct("<H")
_VERSION_HIDDEN = 0x8000  # LSB, Symbol Version Table
_MAX_NAME, _MAX_PREFIX = 65_536, 256
_MANY = 10_000

# st_info, st_other and st_shndx, as readelf writes them.
_TYPES = {0: "NOTYPE", 1: "OBJECT", 2: "FUNC", 3: "SECTION", 4: "FILE", 5: "COMMON", 6: "TLS"}
_TYPES |= {10: "IFUNC"}
_BINDS = {0: "LOCAL", 1: "GLOBAL", 2: "WEAK", 10: "UNIQUE"}
_VISIBILITIES = ("DEFAULT", "INTERNAL", "HIDDEN", "PROTECTED")
_SECTIONS = {0: "UND", 0xFFF1: "ABS", 0xFFF2: "COM"}
_STT_SECTION, _STT_IFUNC = 3, 10
_CODE = (0, 2, _STT_IFUNC)
_IFUNC_INFO = re.compile(rb"[\x0a\x1a\x2a\xaa]")  # of every binding in _BINDS


class Symbol(NamedTuple):
    """One symbol; bytes of its name that are not UTF-8 are written as hex escapes.

    Attributes
    ----------
    section : str
        ``"UND"``, ``"ABS"``, ``"COM"``, or the number of its section.
    default_version : bool
        Whether it is what a name without a version is bound to (``@@``).
    """

    name: str
    defined: bool
    size: int
    type: str
    bind: str
    version: str | None
    address: int
    visibility: str = "DEFAULT"
    section: str = "UND"
    default_version: bool = False


class SymbolTable(Sequence[Symbol]):
    """A symbol table without its null symbol, in file order.

    Parameters
    ----------
    entries, strings : bytes
        The table from its null symbol on, and its string table.
    versions : bytes
        A u16 for each symbol, or nothing.
    version_names : mapping of int to str
        What they mean.
    section_names : sequence of str
        What symbols of type SECTION, which have no name of their own, are called.

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
        version_names: Mapping[int, str] | None = None,
        section_names: Sequence[str] = (),
    ) -> None:
        self._entries = entries[: len(entries) // ENTRY.size * ENTRY.size]
        self._strings = strings
        self._versions = versions
        self._version_names = version_names or {}
        self._section_names = section_names

    def __len__(self) -> int:
        return max(len(self._entries) // ENTRY.size - 1, 0)

    @overload
    def __getitem__(self, index: int) -> Symbol: ...
    @overload
    def __getitem__(self, index: slice) -> list[Symbol]: ...
    def __getitem__(self, index: int | slice) -> Symbol | list[Symbol]:
        if isinstance(index, slice):
            return list(self._decode(range(1, len(self) + 1)[index]))
        return next(self._decode([range(1, len(self) + 1)[index]]))

    def __iter__(self) -> Iterator[Symbol]:
        return self._decode(range(1, len(self) + 1))

    def count_defined(self) -> int:
        """How many symbols this object defines."""
        return len(self) - self._column("H", 3, 12)[1:].count(0)

    def find(self, name: str) -> Symbol | None:
        """Find the symbol of this name that the object defines."""
        return next(self._named(name.encode() + b"\0"), None)

    def beginning_with(self, prefix: str) -> Iterator[Symbol]:
        """Find the defined symbols whose names begin so, in file order."""
        return self._named(prefix.encode())

    def ending_with(self, suffix: str) -> Iterator[Symbol]:
        """Find the defined symbols whose names end so behind something else, in file order."""
        starts = set[int]()
        for at in islice(self._occurrences(suffix.encode() + b"\0"), _MANY):
            begin = max(self._strings.rfind(b"\0", 0, at) + 1, at - _MAX_PREFIX)
            starts.update(range(begin, at))
        return self._decode(i for i in self._among(self._names, starts) if self._is_defined(i))

    def at_addresses(self, addresses: set[int]) -> Iterator[Symbol]:
        """Find the functions that begin at one of the addresses.

        Mapping symbols (``$x``, ``$d``; ELF for the Arm 64-bit Architecture, 5.5.1) are none: they
        say where code begins among data.
        """
        at = self._among(self._column("Q", 1, 3), addresses)
        found = self._decode(i for i in at if self._is_defined(i) and self._type(i) in _CODE)
        return (s for s in found if s.type != "NOTYPE" or not s.name.startswith("$"))

    def ifuncs(self) -> Iterator[Symbol]:
        """Find the functions whose address a resolver of this object gives at load time."""
        found = _IFUNC_INFO.finditer(self._entries[4 :: ENTRY.size], 1)
        return self._decode(m.start() for m in found if self._is_defined(m.start()))

    def _named(self, start: bytes) -> Iterator[Symbol]:
        """Names may share their ends, so that one may begin inside of another."""
        offsets = set(islice(self._occurrences(start), _MANY))
        if len(offsets) < _MANY:
            found = self._among(self._names, offsets) if offsets else iter(())
        else:  # symbol by symbol, for as long as the caller asks for more
            is_start = self._strings.startswith
            found = (i for i, at in enumerate(self._names) if i and is_start(start, at))
        return self._decode(index for index in found if self._is_defined(index))

    def _occurrences(self, text: bytes) -> Iterator[int]:
        at = self._strings.find(text)
        while at >= 0:
            yield at
            at = self._strings.find(text, at + 1)

    @cached_property
    def _names(self) -> list[int]:
        return self._column("I", 0, 6)

    def _column(self, code: Literal["H", "I", "Q"], start: int, step: int) -> list[int]:
        """One field of all entries, the null symbol's first, in one go; words of one width."""
        words: memoryview[int] = memoryview(self._entries).cast(code)
        return words[start::step].tolist()

    def _among(self, column: list[int], wanted: set[int]) -> Iterator[int]:
        """The indices, null symbol aside, at which a column holds one of the values."""
        found = compress(range(len(column)), map(wanted.__contains__, column))
        return (index for index in found if index)

    def _type(self, index: int) -> int:
        return self._entries[index * ENTRY.size + 4] & 15

    def _is_defined(self, index: int) -> bool:
        at = index * ENTRY.size + 6
        return self._entries[at : at + 2] != b"\0\0"

    def _decode(self, indices: Iterable[int]) -> Iterator[Symbol]:
        # Names may share their ends, but not make gigabytes of a small string table.
        budget = 4 * len(self._strings) + (1 << 20)
        for index in indices:
            start, info, other, section, address, size = ENTRY.unpack_from(
                self._entries, index * ENTRY.size
            )
            name = self._name(start, min(budget, _MAX_NAME))
            budget -= len(name)
            if not start and info & 15 == _STT_SECTION and section < len(self._section_names):
                name = self._section_names[section]
            version, default = self._version(index) if self._version_names else (None, False)
            if version == name:  # it stands for the version itself, as linkers define one for each
                version, default = None, False
            yield Symbol(
                name,
                section != 0,
                size,
                _TYPES.get(info & 15) or f"<{info & 15}>",
                _BINDS.get(info >> 4) or f"<{info >> 4}>",
                version,
                address,
                _VISIBILITIES[other & 3],
                _SECTIONS.get(section) or str(section),
                default and section != 0,
            )

    def _name(self, start: int, limit: int) -> str:
        end = self._strings.find(b"\0", start, start + limit)
        name = self._strings[start : end if end >= 0 else start + limit]
        return name.decode("utf-8", "backslashreplace")

    def _version(self, index: int) -> tuple[str | None, bool]:
        if (index + 1) * 2 > len(self._versions):
            return None, False
        (number,) = _VERSION.unpack_from(self._versions, index * 2)
        name = self._version_names.get(number & ~_VERSION_HIDDEN)
        return name, name is not None and not number & _VERSION_HIDDEN
