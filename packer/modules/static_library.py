"""StaticLibraryModule: an object file or archive that is linked unchanged."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.error import ExportError

from ..declare.c_type import parse_functions
from ..elf.archive import MAGIC, THIN_MAGIC
from ..elf.object_check import check_objects
from .host import CodeFile, HostModule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.modules.source import CarriedStaticLibraryModule

    from ..declare.c_type import Functions
    from ..target import Target

_MAGICS = {b"\x7fELF": "o", MAGIC: "a", THIN_MAGIC: "a"}


class StaticLibraryModule(HostModule):
    """Compiled host code: ``.o`` or ``.a``, position-independent.

    Parameters
    ----------
    path_to_o_or_a : path
        The file; read at export. All members of an archive become part of the library.
    functions : mapping of str to str or FunctionDeclaration, or sequence of str
        As for `CSourceModule`; these declarations are not checked against the code.

    Raises
    ------
    ExportError
        If the file is neither an ELF object nor an archive, or cannot be read.
    """

    type_key = "static_library"

    def __init__(
        self,
        path_to_o_or_a: str | os.PathLike[str],
        functions: Functions | Sequence[str] | None = None,
    ) -> None:
        self.path = Path(path_to_o_or_a).absolute()
        self._data: memoryview | None = None
        self.suffix = _suffix_of(_head(self.path), str(self.path))
        self.functions = parse_functions(functions, module=repr(self), entry="main")

    @classmethod
    def from_carried(cls, module: CarriedStaticLibraryModule) -> StaticLibraryModule:
        """View code that a blob contains; it has no declarations."""
        made = cls.__new__(cls)
        made.path, made._data, made.functions = Path("carried"), module.data, ()
        made.suffix = _suffix_of(bytes(module.data[:8]), "static_library")
        return made

    def save(self, path: str | os.PathLike[str], fmt: str = "") -> None:
        """Write a copy of the file."""
        if fmt not in ("", self.suffix):
            super().save(path, fmt)
        if self._data is not None:
            Path(path).write_bytes(self._data)
        else:
            shutil.copyfile(self.path, path)

    def write_code(self, stem: Path, object_format: str, target: Target) -> CodeFile:
        """Copy the file to the linker's folder, so that exactly the checked bytes are linked.

        A thin archive is linked in place: its members are named by relative paths.
        """
        del object_format
        if self._data is None:
            check_objects([self.path], target)
            if _head(self.path) == THIN_MAGIC:
                return CodeFile(self.path, self.suffix, is_checked=True, name=self.path.name)
        path = stem.with_name(f"{stem.name}.{self.suffix}")
        try:
            self.save(path)
        except OSError as error:
            text = f"{self.path}: cannot be copied for the linker: {error.strerror}"
            raise ExportError(text, module=self.type_key, path=str(self.path)) from error
        is_checked = self._data is None
        return CodeFile(path, self.suffix, is_checked=is_checked, name=self.path.name)

    def __repr__(self) -> str:
        return f"<StaticLibraryModule {str(self.path)!r}>"


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(8)
    except OSError as error:
        text = f"{path}: cannot be read as an object or archive: {error.strerror}"
        raise ExportError(text, module="static_library", path=str(path)) from error


def _suffix_of(head: bytes, path: str) -> str:
    for magic, suffix in _MAGICS.items():
        if head.startswith(magic):
            return suffix
    text = f"{path}: begins with {head!r}, expected an ELF object or an archive"
    raise ExportError(text, module="static_library", path=path)
