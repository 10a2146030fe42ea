"""HostModule: host code that merges into the library, in any language."""

from __future__ import annotations

from abc import abstractmethod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.abi import DSO_EXPORTABLE, RUNNABLE
from runtime.error import ExportError
from runtime.module import Module
from runtime.modules.source import CarriedSourceModule, CarriedStaticLibraryModule

from ..declare.constants.found import Constants
from ..declare.constants.variables import is_access
from ..files.arguments import list_of
from ..files.private_directory import temporary_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from ..declare.declaration import Declaration
    from ..levels.table import Level
    from ..target import Target


class CodeFile(NamedTuple):
    """One file for the compiler or the linker."""

    path: Path
    # ``"c"``, ``"cc"``, ``"cu"``; ``"o"`` or ``"a"`` for a file that needs no compiler.
    language: str
    options: tuple[str, ...] = ()  # compiler options for this file only
    is_ours: bool = False  # True if packer wrote the file and chooses how to compile it
    is_checked: bool = False  # True if the file is known to be for the target
    name: str = ""  # the user's name of the file, for messages; by default that of `path`
    # The object or archive for each level of an export with levels, the lowest first.
    variants: tuple[Path, ...] = ()


class HostModule(Module):
    """Host code with declared functions; the base of all module types that `packer` compiles.

    Attributes
    ----------
    functions : tuple of Declaration
        The functions that get a wrapper, so that callers find them by name after a load.
    libraries : tuple of str
        The names of the libraries that the code needs, as in ``-lNAME``.
    link_options : tuple of str
        Further options for the linker driver: the path of a library, ``-Wl,-rpath,DIR``.
    is_complete : bool
        True if the linker must find every symbol that the code needs.
    c_constants : Constants
        The names of enums and the macros that the library has as constants.
    c_globals : mapping of str to str
        The variables that the library has, each with its code.
    c_left_out : mapping of str to str
        The constants and variables that are not exported, each with the reason.
    left_out : mapping of str to str
        The functions that are not exported, each with the reason.
    left_out_types : mapping of str to str
        The C declarations of these functions, as far as they are known.
    stem : str
        The name of the file that the code is written to, without a suffix, if no other module of
        the tree has it. By it the object cache finds the object of another export. By default
        files are numbered.
    prelinked : Path, optional
        A library that packer exported for this machine, with the code of this module and of all
        modules that name the same file. An export of no other code copies it (packer.prelinked).
    one_level : str
        Why the code cannot be compiled for several CPU levels, such as ``option '-march=native'``;
        empty if it can.
    """

    property_mask = DSO_EXPORTABLE
    functions: tuple[Declaration, ...] = ()
    libraries: tuple[str, ...] = ()
    link_options: tuple[str, ...] = ()
    is_complete = False
    c_constants: Constants = Constants()
    c_globals: Mapping[str, str] = MappingProxyType({})
    c_left_out: Mapping[str, str] = MappingProxyType({})
    left_out: Mapping[str, str] = MappingProxyType({})
    left_out_types: Mapping[str, str] = MappingProxyType({})
    stem = ""
    prelinked: Path | None = None

    @property
    def one_level(self) -> str:
        """Code has no such reason unless its type knows one."""
        return ""

    @abstractmethod
    def write_code(self, stem: Path, object_format: str, target: Target) -> CodeFile:
        """Write the code as ``<stem>.<suffix>``.

        Parameters
        ----------
        stem : Path
            The path without a suffix, in a private folder.
        object_format : str
            The suffix that the linker prefers: ``"o"``, ``"ll"``, ``"bc"``, ``"s"``.
        target : Target
            The target of the library.

        Raises
        ------
        ExportError
            If the code cannot be written so, or is for another target.
        """

    def write_levels(
        self, stem: Path, object_format: str, target: Target, levels: Sequence[Level]
    ) -> CodeFile:
        """Write the code for an export with levels of processors.

        Parameters
        ----------
        stem, object_format, target
            As for `write_code`.
        levels : sequence of Level
            The levels of the export, the lowest first; at least one.

        Returns
        -------
        CodeFile
            Source, which is compiled once for each level; or an object or archive with a variant
            for each level. One without variants is linked once, for all levels.

        Raises
        ------
        ExportError
            As for `write_code`, or if the module has no code for a level.
        """
        del levels
        return self.write_code(stem, object_format, target)

    def _variants(self, stem: Path, target: Target, levels: Mapping[Level, HostModule]) -> CodeFile:
        """Write the object or archive of a module for each level."""
        files = [
            module.write_code(stem.with_name(f"{stem.name}.{level.name}"), "o", target)
            for level, module in levels.items()
        ]
        variants, name = tuple(file.path for file in files), files[0].name or repr(self)
        return files[0]._replace(variants=variants, name=name)

    def _copied(self) -> Self:
        """Return a copy without imports, which only writes code; `copy.copy` would serialise."""
        made = self.__new__(type(self))
        made.__dict__.update({**self.__dict__, **made.__dict__})
        return made

    def input_files(self) -> Sequence[Path]:
        """Return the files that the code is read from."""
        path: Path | None = getattr(self, "path", None)
        return () if path is None else (path,)

    def leave_out(self, reasons: Mapping[str, str]) -> bool:
        """Leave out functions for these reasons; return True if the rest may be exported."""
        del reasons
        return False

    def avoid_macros(self, refused: Collection[str]) -> bool:
        """Call functions in place of macros of their names; return True if that changes a call."""
        del refused
        return False

    def function_names(self) -> list[str]:
        """Return the names of the declared functions."""
        return [d.name for d in self.functions if not is_access(d.name)]


class RunnableModule(HostModule):
    """Host code whose functions can be called before it is exported.

    Notes
    -----
    The first look-up exports the module with its imports to a temporary library, and loads that.
    Host code does not see imports that are added later.
    """

    property_mask = RUNNABLE | DSO_EXPORTABLE
    _loaded: Module | None = None

    def find_function(self, name: str) -> Callable[..., Any] | None:
        """Find a function in the library that this module is exported to."""
        if self._loaded is None:
            self._loaded = load_exported(self)
        return self._loaded.find_function(name)


def library_names(libraries: Sequence[str]) -> tuple[str, ...]:
    """Check the names of libraries.

    Raises ExportError if one is an option or a file instead of a name.
    """
    for name in (names := list_of(libraries, "libraries")):
        if not name or name.startswith("-") or "/" in name:
            text = f"library {name!r}: expected a name, such as foo for libfoo.so"
            raise ExportError(f"{text}; give files and folders as options of the link")
    return tuple(names)


def load_exported(module: Module) -> Module:
    """Export a module to a temporary library, load it, and remove its file."""
    import runtime

    with temporary_directory() as folder:
        return runtime.load(module.export_library(folder / f"{module.type_key}.so"))


def as_host_module(module: Module) -> HostModule:
    """View any DSO-exportable module as a HostModule.

    Raises ExportError if packer cannot compile modules of this type.
    """
    from .c_source import CSourceModule
    from .static_library import StaticLibraryModule

    if isinstance(module, HostModule):
        return module
    if isinstance(module, CarriedSourceModule):
        return CSourceModule.from_carried(module)
    if isinstance(module, CarriedStaticLibraryModule):
        return StaticLibraryModule.from_carried(module)
    text = f"{module!r} is DSO-exportable, expected a packer.modules.host.HostModule"
    raise ExportError(text, module=module.type_key)
