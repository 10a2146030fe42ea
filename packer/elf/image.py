"""Image: a file as the dynamic loader maps it; every read is checked against the file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.error import LibraryLoadError, PackerError

if TYPE_CHECKING:
    from .symbol_table import Symbol

# gABI: Elf64_Phdr, PT_ and PF_ numbers.
_PROGRAM_HEADER = Struct("<IIQQQQQQ")
PT_LOAD, PT_DYNAMIC = 1, 2
PT_GNU_STACK, PT_GNU_RELRO = 0x6474E551, 0x6474E552
PF_X, PF_W, PF_R = 1, 2, 4
_MAX_SEGMENTS = 4096

# p_type, as readelf writes it.
_TYPES = {
    **dict(enumerate(("NULL", "LOAD", "DYNAMIC", "INTERP", "NOTE", "SHLIB", "PHDR", "TLS"))),
    **dict(enumerate(("EH_FRAME", "STACK", "RELRO", "PROPERTY", "SFRAME"), 0x6474E550)),
}


class Segment(NamedTuple):
    """One program header; `nbytes` is what it has in the file, `memory_nbytes` when loaded."""

    type: int
    flags: int
    offset: int
    address: int
    nbytes: int
    memory_nbytes: int

    @property
    def type_name(self) -> str:
        """As readelf writes it."""
        name = _TYPES.get(self.type) or f"{self.type:#x}"
        return f"GNU_{name}" if self.type >= PT_GNU_STACK - 1 and self.type in _TYPES else name

    @property
    def access(self) -> str:
        """What a load allows there: ``"R E"``, ``"RW "``, as readelf writes it."""
        flags = zip("RWE", (PF_R, PF_W, PF_X), strict=True)
        return "".join(letter if self.flags & bit else " " for letter, bit in flags)

    def to_dict(self) -> dict[str, Any]:
        """Return it with names for numbers."""
        return self._asdict() | {"type": self.type_name, "flags": self.access}


class Image:
    """A shared object, seen through its program headers.

    Parameters
    ----------
    data : memoryview
        The whole file.
    path : str
        For messages.
    problems : list of str
        Receives what could not be read.

    Attributes
    ----------
    machine : str
        As ELF names it, lower case.

    Raises
    ------
    LibraryLoadError
        ELF header or program headers cannot be read.
    """

    def __init__(self, data: memoryview, path: str, problems: list[str]) -> None:
        self.data = data
        self.path = path
        self.problems = problems
        self._structs = _structs()
        self.header = self.record("Elf_Ehdr", 0, "ELF header")
        self._structs.create_advanced_structs(self.header.e_type, self.header.e_machine)
        self.machine_number = int.from_bytes(data[18:20], "little")
        self.machine = str(self.header.e_machine).removeprefix("EM_").lower()
        self.segments = list(self._read_segments())

    def record(self, name: str, offset: int, where: str) -> Any:
        """Parse one record of the file with the structure that pyelftools has for it.

        Raises
        ------
        LibraryLoadError
            It lies beyond the end of the file.
        """
        structure = getattr(self._structs, name)
        return structure.parse(bytes(self.slice(offset, structure.sizeof(), where)))

    def slice(self, offset: int, nbytes: int, where: str) -> memoryview:
        """Give bytes of the file by their offset.

        Raises
        ------
        LibraryLoadError
            They lie beyond its end.
        """
        if nbytes > len(self.data) - offset:
            text = f"{nbytes:#x} bytes at offset {offset:#x}, expected inside the file of "
            raise self.error(f"{where}: {text}{len(self.data):#x} bytes", "truncated")
        return self.data[offset : offset + nbytes]

    def offset_of(self, address: int, nbytes: int, where: str) -> int:
        """Turn an address into the file offset that a load maps there.

        Raises
        ------
        LibraryLoadError
            The range does not lie in the file's part of one segment.
        """
        load = self._segment_at(address, nbytes)
        if load is None:
            text = f"{nbytes:#x} bytes at address {address:#x}, expected inside one PT_LOAD"
            raise self.error(f"{where}: {text} with file bytes behind it")
        return load.offset + address - load.address

    def at(self, address: int, nbytes: int, where: str) -> memoryview:
        """Give the file bytes behind an address. Raises LibraryLoadError where there are none."""
        return self.slice(self.offset_of(address, nbytes, where), nbytes, where)

    def rest_at(self, address: int, where: str) -> memoryview:
        """Give all file bytes from an address to the end of its segment."""
        load = self._segment_at(address, 0)
        nbytes = load.address + load.nbytes - address if load else 0
        return self.at(address, nbytes, where)

    def data_of(self, symbol: Symbol) -> memoryview:
        """Give the bytes behind a data symbol, as the loader would take them.

        Raises
        ------
        LibraryLoadError
            It is no data of a read-only segment.
        """
        where = f"{symbol.name} at {symbol.address:#x}"
        if symbol.type not in ("OBJECT", "NOTYPE"):
            raise self.error(f"{where}: type {symbol.type}, expected data", "blob")
        if symbol.size == 0:
            raise self.error(f"{where}: size 0, expected data", "blob")
        data = self.at(symbol.address, symbol.size, symbol.name)
        load = self._segment_at(symbol.address, symbol.size)
        if load is not None and load.flags & PF_W:
            raise self.error(f"{where}: in a writable segment, expected a read-only one", "blob")
        return data

    def error(self, what: str, reason: str = "malformed") -> LibraryLoadError:
        """Make the error that names the file."""
        return LibraryLoadError(f"{self.path}: {what}", path=self.path, reason=reason)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn an error inside the block into a problem: the rest of the file is still shown."""
        try:
            yield
        except PackerError as error:
            self.add_problem(error)

    def add_problem(self, error: PackerError) -> None:
        """Keep what an error says, without the path."""
        self.problems.append(error.message.removeprefix(f"{self.path}: "))

    def _segment_at(self, address: int, nbytes: int) -> Segment | None:
        for load in self.segments:
            if load.type == PT_LOAD and 0 <= address - load.address <= load.nbytes - nbytes:
                return load
        return None

    def _read_segments(self) -> Iterator[Segment]:
        header, size = self.header, _PROGRAM_HEADER.size
        if header.e_phentsize != size or header.e_phnum > _MAX_SEGMENTS:
            found = f"{header.e_phnum} of {header.e_phentsize} bytes"
            text = f"program headers, expected at most {_MAX_SEGMENTS} of {size} bytes"
            raise self.error(f"ELF header: {text}, found {found}")
        table = self.slice(header.e_phoff, header.e_phnum * size, "program headers")
        for number, flags, offset, address, _, nbytes, memory, _ in _PROGRAM_HEADER.iter_unpack(
            table
        ):
            yield Segment(number, flags, offset, address, nbytes, memory)


def _structs() -> Any:
    """The structures of ELF-64, as pyelftools declares them."""
    from elftools.elf.structs import ELFStructs

    structs = ELFStructs(little_endian=True, elfclass=64)
    structs.create_basic_structs()
    return structs
