"""StaticLibraryModule: code that packer does not read: objects, archives, assembler, Fortran."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.error import ExportError

from ..declare.c_type import parse_functions
from ..elf.archive import MAGIC, THIN_MAGIC
from ..elf.object_check import BITCODE, check_objects
from ..elf.safe_calls import safe_calls
from ..toolchain.compiler import C_LANGUAGES, LANGUAGE_OF_SUFFIX
from .host import CodeFile, HostModule

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.modules.source import CarriedStaticLibraryModule

    from ..declare.c_type import Functions
    from ..levels.table import Level
    from ..target import Target

_MAGICS = {b"\x7fELF": "o", MAGIC: "a", THIN_MAGIC: "a"}


class StaticLibraryModule(HostModule):
    """Compiled host code: ``.o`` or ``.a``, position-independent; or assembler and Fortran.

    Parameters
    ----------
    path_to_o_or_a : path, or mapping of str to path
        The file; read at export. Assembler (``.s``, ``.S``) and Fortran (``.f90``, ``.f95``,
        ``.f03``, ``.f08``) are compiled. All members of an archive become part of the library. A
        mapping has a file for each level of processors, by its name: ``{"x86-64-v2":
        "fast-v2.a", "x86-64-v3": "fast-v3.a"}``, for an export with levels (``Build(cpu=)``). All
        define the same functions. A level without a file has that of the next lower one.
    functions : mapping of str to str or FunctionDeclaration, or sequence of str
        As for `CSourceModule`; these declarations are not checked against the code. Functions
        that the file defines as ``__tvm_ffi_<name>``, as other compilers do, need none.

    Raises
    ------
    ExportError
        If a file is neither an ELF object nor an archive, or cannot be read, or if the mapping is
        empty.

    Attributes
    ----------
    path : Path
        The file; the first one of a mapping.
    """

    type_key = "static_library"

    def __init__(
        self,
        path_to_o_or_a: str | os.PathLike[str] | Mapping[str, str | os.PathLike[str]],
        functions: Functions | Sequence[str] | None = None,
    ) -> None:
        given = path_to_o_or_a if isinstance(path_to_o_or_a, Mapping) else {"": path_to_o_or_a}
        if not given:
            raise ExportError("no file, expected one for each level", module=self.type_key)
        self._levels = {name: Path(path).absolute() for name, path in given.items()}
        suffixes = [_language_of(path) for path in self._levels.values()]
        self.path, self.suffix = next(iter(self._levels.values())), suffixes[0]
        self._data: memoryview | None = None
        self.functions = parse_functions(functions, module=repr(self), entry="main")

    @classmethod
    def from_carried(cls, module: CarriedStaticLibraryModule) -> StaticLibraryModule:
        """View code that a blob contains; it has no declarations."""
        made = cls.__new__(cls)
        made.path, made._data, made.functions = Path("carried"), module.data, ()
        made._levels = {"": made.path}
        made.suffix = _suffix_of(bytes(module.data[:8]), "static_library")
        return made

    def function_names(self) -> list[str]:
        """Return the declared functions, and the ones the file defines as ``__tvm_ffi_<f>``."""
        is_object = self._data is None and self.suffix in _MAGICS.values()
        return [*super().function_names(), *(safe_calls(self.path) if is_object else ())]

    def save(self, path: str | os.PathLike[str], fmt: str = "") -> None:
        """Write a copy of the file."""
        if fmt not in ("", self.suffix):
            super().save(path, fmt)
        self._refuse_several()
        if self._data is not None:
            Path(path).write_bytes(self._data)
        else:
            shutil.copyfile(self.path, path)

    def write_code(self, stem: Path, object_format: str, target: Target) -> CodeFile:
        """Copy the file to the linker's folder, so that exactly the checked bytes are linked.

        A thin archive is linked in place: its members are named by relative paths.
        """
        del object_format
        self._refuse_several()
        is_source = self.suffix not in _MAGICS.values()
        if self._data is None and not is_source:
            check_objects([self.path], target)
            if _head(self.path) == THIN_MAGIC:
                return CodeFile(self.path, self.suffix, is_checked=True, name=self.path.name)
        path = stem.with_name(f"{stem.name}.{self.suffix}")
        try:
            self.save(path)
        except OSError as error:
            text = f"{self.path}: cannot be copied for the linker: {error.strerror}"
            raise ExportError(text, module=self.type_key, path=str(self.path)) from error
        is_checked = self._data is None and not is_source
        return CodeFile(path, self.suffix, is_checked=is_checked, name=self.path.name)

    def write_levels(
        self, stem: Path, object_format: str, target: Target, levels: Sequence[Level]
    ) -> CodeFile:
        """Copy the file of each level; one file for all is linked once."""
        if "" in self._levels:
            return self.write_code(stem, object_format, target)
        names = [level.name for level in levels]
        if others := [name for name in self._levels if name not in names]:
            text = f"{self!r}: a file for {others[0]}, expected one of the levels of the export"
            raise ExportError(f"{text}: {', '.join(names)}; drop it", module=self.type_key)
        modules: dict[Level, HostModule] = {}
        for i, level in enumerate(levels):
            usable = (name for name in names[i::-1] if name in self._levels)
            modules[level] = self._of_level(next(usable, ""), names)
        return self._variants(stem, target, modules)

    def _of_level(self, name: str, names: Sequence[str]) -> StaticLibraryModule:
        if not name:
            text = f"{self!r}: no file for {names[0]}, the lowest level of the export"
            raise ExportError(f"{text}; found {', '.join(self._levels)}", module=self.type_key)
        made, path = self._copied(), self._levels[name]
        made._levels = {"": path}
        made.path, made.suffix = path, _language_of(path)
        return made

    def input_files(self) -> Sequence[Path]:
        """Return the files of all levels."""
        return tuple(self._levels.values())

    def _refuse_several(self) -> None:
        if "" not in self._levels:
            text = f"{self!r}: a file for each of {', '.join(self._levels)}, expected one"
            hint = f"export with cpu={list(self._levels)}, or give one file"
            raise ExportError(f"{text}; {hint}", module=self.type_key)

    def __repr__(self) -> str:
        return f"<StaticLibraryModule {str(self.path)!r}>"


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(8)
    except OSError as error:
        text = f"{path}: cannot be read as an object or archive: {error.strerror}"
        raise ExportError(text, module="static_library", path=str(path)) from error


def _language_of(path: Path) -> str:
    """Return the language of a file that is compiled, or the suffix of an object or archive."""
    head, language = _head(path), LANGUAGE_OF_SUFFIX.get(path.suffix, "c")
    return language if language not in C_LANGUAGES else _suffix_of(head, str(path))


def _suffix_of(head: bytes, path: str) -> str:
    for magic, suffix in _MAGICS.items():
        if head.startswith(magic):
            return suffix
    text = f"{path}: begins with {head!r}, expected an ELF object or an archive"
    if head.startswith(BITCODE):
        text = (
            f"{path}: LLVM bitcode, expected an ELF object or an archive; name it .bc, or compile "
        )
        text += "it without -flto and -emit-llvm"
    raise ExportError(text, module="static_library", path=path)
