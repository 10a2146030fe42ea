"""Image: a file as the dynamic loader maps it; every read is checked against the file's size."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.error import LibraryLoadError, PackerError

from .structures import P_TYPES, PF_R, PF_W, PF_X, PT_LOAD, ProgramHeader, layout_of

if TYPE_CHECKING:
    from .symbol_table import Symbol

_MAX_SEGMENTS = 4096


class Segment(NamedTuple):
    """One program header; `nbytes` is its size in the file, `memory_nbytes` its size loaded."""

    type: int
    flags: int
    offset: int
    address: int
    nbytes: int
    memory_nbytes: int

    @property
    def type_name(self) -> str:
        """The type as readelf prints it."""
        return P_TYPES.get(self.type) or f"{self.type:#x}"

    @property
    def access(self) -> str:
        """The access rights as readelf prints them: ``"R E"``, ``"RW "``."""
        flags = zip("RWE", (PF_R, PF_W, PF_X), strict=True)
        return "".join(letter if self.flags & bit else " " for letter, bit in flags)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, with names for numbers."""
        return self._asdict() | {"type": self.type_name, "flags": self.access}


class Image:
    """A shared object, read through its program headers.

    A read outside the file raises LibraryLoadError. `problems` receives what `reading` catches.
    `path` is for messages; `machine` is the ELF name, lower case.
    """

    def __init__(self, data: memoryview, path: str, problems: list[str]) -> None:
        self.data = data
        self.path = path
        self.problems = problems
        self._structs = _structs()
        self.header = self.structure("Elf_Ehdr", 0, "ELF header")
        self._structs.create_advanced_structs(self.header.e_type, self.header.e_machine)
        self.machine_number = int.from_bytes(data[18:20], "little")
        self.machine = str(self.header.e_machine).removeprefix("EM_").lower()
        self.segments = list(self._read_segments())

    def structure(self, name: str, offset: int, where: str) -> Any:
        """Parse one structure of the file, by its name, from pyelftools."""
        structure = getattr(self._structs, name)
        return structure.parse(bytes(self.slice(offset, structure.sizeof(), where)))

    def slice(self, offset: int, nbytes: int, where: str) -> memoryview:
        """Return bytes of the file by their offset."""
        if nbytes > len(self.data) - offset:
            text = f"{nbytes:#x} bytes at offset {offset:#x}, expected inside the file of "
            raise self.error(f"{where}: {text}{len(self.data):#x} bytes", "truncated")
        return self.data[offset : offset + nbytes]

    def offset_of(self, address: int, nbytes: int, where: str) -> int:
        """Return the file offset that a load maps to an address, inside one segment."""
        load = self._segment_at(address, nbytes)
        if load is None:
            text = f"{nbytes:#x} bytes at address {address:#x}, expected inside one PT_LOAD"
            raise self.error(f"{where}: {text} with file bytes")
        return load.offset + address - load.address

    def at(self, address: int, nbytes: int, where: str) -> memoryview:
        """Return the file bytes at an address."""
        return self.slice(self.offset_of(address, nbytes, where), nbytes, where)

    def rest_at(self, address: int, where: str) -> memoryview:
        """Return all file bytes from an address to the end of its segment."""
        load = self._segment_at(address, 0)
        nbytes = load.address + load.nbytes - address if load else 0
        return self.at(address, nbytes, where)

    def data_of(self, symbol: Symbol) -> memoryview:
        """Return the bytes of a data symbol, which must be in a read-only segment."""
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
        """Create an error that names the file."""
        return LibraryLoadError(f"{self.path}: {what}", path=self.path, reason=reason)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn an error inside the block into a problem, so that the rest of the file is read."""
        try:
            yield
        except PackerError as error:
            self.add_problem(error)

    def add_problem(self, error: PackerError) -> None:
        """Structure the message of an error, without the path."""
        self.problems.append(error.message.removeprefix(f"{self.path}: "))

    def _segment_at(self, address: int, nbytes: int) -> Segment | None:
        for load in self.segments:
            if load.type == PT_LOAD and 0 <= address - load.address <= load.nbytes - nbytes:
                return load
        return None

    def _read_segments(self) -> Iterator[Segment]:
        header, layout = self.header, layout_of(ProgramHeader)
        size = layout.size
        if header.e_phentsize != size or header.e_phnum > _MAX_SEGMENTS:
            found = f"{header.e_phnum} of {header.e_phentsize} bytes"
            text = f"program headers, expected at most {_MAX_SEGMENTS} of {size} bytes"
            raise self.error(f"ELF header: {text}, found {found}")
        table = self.slice(header.e_phoff, header.e_phnum * size, "program headers")
        for p_type, flags, offset, address, _, nbytes, memory, _ in layout.iter_unpack(table):
            yield Segment(p_type, flags, offset, address, nbytes, memory)


def _structs() -> Any:
    """The structures of ELF-64 that pyelftools declares."""
    from elftools.elf.structs import ELFStructs

    structs = ELFStructs(little_endian=True, elfclass=64)
    structs.create_basic_structs()
    return structs


def map_file(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> memoryview:
    """Map a file read-only, never executable; the view owns the mapping."""
    try:
        with open(path, "rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:
        text = f"{valid_path(path)}: cannot map: {error}"
        raise LibraryLoadError(text, path=os.fsdecode(path), reason="io") from error


def valid_path(path: str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> str:
    """Return a path as valid text, whatever its bytes are."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")
