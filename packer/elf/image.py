"""Image: a file as the dynamic loader maps it, with its path for messages."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

from runtime import elf
from runtime.elf import ElfImage
from runtime.error import LibraryLoadError, PackerError

from .structures import P_TYPES, PF_R, PF_W, PF_X, Header

if TYPE_CHECKING:
    from .symbol_table import Symbol


class Segment(elf.Segment):
    """One program header, shown as by readelf."""

    __slots__ = ()

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


class Image(ElfImage):
    """A shared object.

    A read outside the file raises LibraryLoadError. `problems` receives what `reading` catches.
    `path` is for messages.
    """

    segments: list[Segment]  # type: ignore[assignment]

    def __init__(self, data: memoryview, path: str, problems: list[str]) -> None:
        self.path = path
        self.problems = problems
        super().__init__(data)
        self.segments = [Segment(*segment) for segment in self.segments]
        self.header = Header(*self._header)

    @cached_property
    def machine(self) -> str:
        """The name of the processor in ELF, lower case, as ``"x86_64"``."""
        from elftools.elf.enums import ENUM_E_MACHINE  # slow to import

        names = {number: name for name, number in ENUM_E_MACHINE.items()}
        return str(names.get(self.machine_number, self.machine_number)).removeprefix("EM_").lower()

    def data_of(self, symbol: Symbol) -> memoryview:
        """Return the bytes of a data symbol, which must be in a read-only segment."""
        where = f"{symbol.name} at {symbol.address:#x}"
        if symbol.type not in ("OBJECT", "NOTYPE"):
            what = "a function, expected data" if symbol.type == "FUNC" else "not plain data"
            raise self.error(f"{where}: is {what}", "blob")
        if symbol.size == 0:
            raise self.error(f"{where}: has size 0", "blob")
        data = self.at(symbol.address, symbol.size, symbol.name)
        load = self._load_at(symbol.address, symbol.size)
        if load is not None and load.flags & PF_W:
            raise self.error(f"{where}: is in a writable segment, expected a read-only one", "blob")
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
