"""C headers: every function that a header declares, called through the compiler.

The module is a C unit that includes the header, with one hidden function for each exported one. So
the compiler checks every call, and macros and inline functions of the header work too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime.error import ExportError

from ...declare.automatic import functions_declared
from ...declare.c.scope import Scope
from ...files.arguments import list_of
from ...files.text import path_error
from ...modules.c_source import CSourceModule, compiler_options
from ...modules.host import library_names

if TYPE_CHECKING:
    from ...declare.c.text import Chunk
    from ...declare.c_type import Functions
    from ...declare.declaration import Declaration


def from_header(
    path: str | os.PathLike[str],
    *,
    include: Sequence[str | os.PathLike[str]] = (),
    define: Sequence[str] = (),
    options: Sequence[str] = (),
    functions: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    libraries: Sequence[str] = (),
) -> HeaderModule:
    """Make a module of the functions that a C header declares.

    Parameters
    ----------
    path : path
        The header. Its functions are exported, and those of headers in its folder that it
        includes; not those of the system's headers.
    include : sequence of path
        Folders with further headers.
    define : sequence of str
        Macros: ``"NAME"`` or ``"NAME=VALUE"``.
    options : sequence of str
        Further compiler options.
    functions : mapping, optional
        Functions to change or to add: a declaration, options alone, such as ``{"out": ["x"]}``,
        or False to leave the function out.
    only : sequence of str
        The functions to export, beside those of `functions`; by default all.
    libraries : sequence of str
        The names of the libraries that define the functions: ``"z"`` for libz.so.

    Returns
    -------
    HeaderModule
        Its `left_out` says which functions are not exported, and why.

    Raises
    ------
    ExportError
        If the header cannot be read, or if `functions` or `only` has a mistake.
    ToolchainError
        If the compiler cannot preprocess the header.

    Examples
    --------
    >>> import packer, runtime
    >>> zlib = packer.from_header("/usr/include/zlib.h", libraries=["z"])
    >>> path = packer.export_library(zlib, "z.so")
    >>> runtime.load(path)["zlibVersion"]()[:2]
    '1.'
    """
    words = compiler_options(include, define, options)
    module = HeaderModule(path, functions, words, list_of(only, "only"))
    module.libraries = library_names(libraries)
    return module


class HeaderModule(CSourceModule):
    """The functions of a C header; `from_header` makes one."""

    is_complete = True

    def __init__(
        self,
        path: str | os.PathLike[str],
        functions: Mapping[str, Any] | None = None,
        options: Sequence[str] = (),
        only: Sequence[str] = (),
    ) -> None:
        self.header = Path(path)
        if not self.header.is_file():
            raise path_error(path, "there is no such header")
        name = self.header.name
        if '"' in name or "\\" in name or not name.isprintable():
            raise path_error(path, "no #include can have this name; rename the header")
        self._place = os.path.abspath(self.header)
        beside = ["-iquote", os.path.dirname(self._place)]
        code = f'#include "{name}"\n'
        self._only = only
        super().__init__(code, fmt="c", functions=functions or {}, options=[*beside, *options])
        self.is_read = True
        self._chosen = {*(functions or ()), *only}

    def _read_functions(
        self, functions: Functions | Sequence[str] | None
    ) -> tuple[Declaration, ...]:
        if not isinstance(functions, Mapping):
            text = f"{self!r}: functions, expected a table of changes, found {functions!r}"
            raise ExportError(text, module=self.type_key)
        scope = Scope(self._preprocessed, is_open=False)
        made, self.left_out = functions_declared(
            scope, repr(self), self._is_own, functions, self._only
        )
        return made

    def input_files(self) -> Sequence[Path]:
        """Return the header."""
        return (self.header,)

    def leave_out(self, undefined: set[str]) -> bool:
        """Leave out the functions that no library defines; return False if that solves nothing.

        Functions that the caller named stay, and so do all if none would be left.
        """
        missing = {
            d.name
            for d in self.functions
            if (d.check.calls or d.name) in undefined and d.name not in self._chosen
        }
        kept = tuple(d for d in self.functions if d.name not in missing)
        if not missing or not kept:
            return False
        self.functions = kept
        self.left_out.update(dict.fromkeys(sorted(missing), "no library that is linked defines it"))
        return True

    def _is_own(self, chunk: Chunk) -> bool:
        """Return True for a declaration of this header, or of one in its folder."""
        path, folder = os.path.abspath(chunk.file), os.path.dirname(self._place)
        return path == self._place or (not chunk.is_system and path.startswith(f"{folder}/"))

    def __repr__(self) -> str:
        return f"<HeaderModule {str(self.header)!r}>"
