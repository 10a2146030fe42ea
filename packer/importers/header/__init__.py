"""C headers: every function that a header declares, called through the compiler.

The module is a C unit that includes the header, with one hidden function for each exported one. So
the compiler checks every call, and macros and inline functions of the header work too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime.error import ExportError, ToolchainError

from ...declare.automatic import functions_declared
from ...declare.c.scope import Scope
from ...declare.constants.found import without
from ...declare.constants.variables import is_access, variable_of
from ...files.arguments import list_of, one_or_more
from ...files.text import path_error
from ...modules.c_source import CSourceModule, c_string, compiler_options
from ...modules.host import library_names
from ...toolchain.pkg_config import PREFIX, find_package, header_of
from ...toolchain.preprocess import check_syntax
from .included import OwnHeaders

if TYPE_CHECKING:
    from ...declare.c_type import Functions
    from ...declare.declaration import Declaration

_CPP_WORDS = re.compile(r"template\s*<|class\s+\w|using\s+\w")
_CPP_HEADER = re.compile(r"fatal error: '?([a-z_]+)'?(?::| file)")  # <vector>: without a suffix
_CPP_SUFFIXES = (".hpp", ".hh", ".hxx")
_MAX_NAMES = 5  # in a message


def from_header(
    path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    include: Sequence[str | os.PathLike[str]] = (),
    define: Sequence[str] = (),
    options: Sequence[str] = (),
    functions: Mapping[str, Any] | None = None,
    only: Sequence[str] = (),
    libraries: Sequence[str] = (),
    constants: Sequence[str] = (),
    header_filter: Sequence[str] = (),
) -> HeaderModule:
    """Make a module of the functions, constants and variables that C headers declare.

    Parameters
    ----------
    path : path, or sequence of path
        The header, or several, which one unit includes in this order; ``"pkg-config:libuv"`` is
        the header of a package, with its options and its library. Exported are the functions
        of each, and of the headers in its folder or below that it names in quotes. Others
        of that folder count too, the system's only if there is no other function. The suffix
        ``.hpp``, ``.hh`` or ``.hxx`` means C++, of which ``extern "C"`` functions are exported.
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
        The functions to export, in addition to `functions`; by default all.
    libraries : sequence of str
        The names of the libraries that define the functions: ``"z"`` for libz.so.
    constants : sequence of str
        Patterns of the names of constants and variables to export, as `CSourceModule` takes them.
    header_filter : sequence of str
        Patterns of the headers that count as parts, in place of the rule for `path`: ``"gsl/*"``;
        with ``!`` before it, of headers that do not count.

    Returns
    -------
    HeaderModule
        Its `left_out` says which functions are not exported, and why.

    Raises
    ------
    ExportError
        If a header cannot be read, if no function is declared, or if `functions` or `only` has a
        mistake.
    ToolchainError
        If the compiler cannot preprocess the header, or refuses one that declares no function.

    Examples
    --------
    >>> import packer, runtime
    >>> zlib = packer.from_header("/usr/include/zlib.h", libraries=["z"])
    >>> path = packer.export_library(zlib, "z.so")
    >>> runtime.load(path)["zlibVersion"]()[:2]
    '1.'
    """
    given = one_or_more(path, "path")
    names = [os.fspath(header) for header in given]
    packages = [find_package(name.removeprefix(PREFIX)) for name in names if _is_package(name)]
    headers = [header for header in names if not _is_package(header)]
    words = compiler_options(include, define, options)
    module = HeaderModule(
        headers or [header_of(package) for package in packages],
        functions,
        (*words, *(word for package in packages for word in package.compile_options)),
        list_of(only, "only"),
        constants,
        header_filter,
    )
    module.libraries = library_names(libraries)
    module.link_options = tuple(word for package in packages for word in package.link_options)
    return module


def _is_package(header: str) -> bool:
    return header.startswith(PREFIX)


class HeaderModule(CSourceModule):
    """The functions of C headers; `from_header` makes one."""

    is_complete = True

    def __init__(
        self,
        path: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
        functions: Mapping[str, Any] | None = None,
        options: Sequence[str] = (),
        only: Sequence[str] = (),
        constants: Sequence[str] = (),
        header_filter: Sequence[str] = (),
    ) -> None:
        paths = [path] if isinstance(path, (str, os.PathLike)) else path
        self.headers = tuple(map(Path, paths))
        for header in self.headers:
            _check(header, [other.name for other in self.headers])
        absolute = [os.path.abspath(header) for header in self.headers]
        self._own = OwnHeaders(absolute, list_of(header_filter, "header_filter"))
        beside = [word for folder in self._own.folders for word in ("-iquote", folder)]
        code = "".join(f'#include "{header.name}"\n' for header in self.headers)
        self._only = only
        self._chosen = {*(functions or ()), *only}
        is_cpp = any(header.suffix in _CPP_SUFFIXES for header in self.headers)
        super().__init__(
            code,
            fmt="cc" if is_cpp else "c",
            functions=functions or {},
            options=[*beside, *options],
            constants=constants,
        )
        self.is_read = True

    def _read_functions(
        self, functions: Functions | Sequence[str] | None
    ) -> tuple[Declaration, ...]:
        if not isinstance(functions, Mapping):
            text = f"{self!r}: functions, expected a table of changes, found {functions!r}"
            raise ExportError(text, module=self.type_key)
        scope = Scope(self._preprocessed, is_open=False, is_cpp=self.fmt != "c")
        self._refuse_cpp(scope)
        for is_own in (self._own.has, self._own.is_beside, self._own.has):
            found = functions_declared(scope, repr(self), is_own, functions, self._only)
            if found.made or found.left_out or self._chosen:
                break
        made = self._take(found, scope, is_own, is_header=True)
        if made or self.c_constants.values or self.left_out or self._chosen:
            return made
        check_syntax(*self._unit())
        raise path_error(self.headers[0], self._nothing_text())

    def _preprocessed(self) -> str:
        try:
            return super()._preprocessed()
        except ToolchainError as error:
            if self.fmt == "c" and (match := _CPP_HEADER.search(error.stderr)):
                raise self._cpp(f"it includes <{match[1]}>") from error
            raise

    def _refuse_cpp(self, scope: Scope) -> None:
        """Refuse a header that only C++ can read: nothing of it would be found, without a word."""
        for chunk in scope.chunks if self.fmt == "c" else ():
            if self._own.has(chunk) and (_CPP_WORDS.match(chunk.text) or not chunk.is_global):
                raise self._cpp(f"line {chunk.line} of {chunk.file}")

    def _cpp(self, where: str) -> ExportError:
        text = f"is a header of C++, expected one of C ({where}); include it in a source of C++"
        return path_error(self.headers[0], f'{text} (.cc) with functions that are extern "C"')

    def _lines(self) -> bytes:
        """Return the code, whose end is the end of the last header for the compiler's errors."""
        header = os.path.abspath(self.headers[-1])
        count = len(Path(header).read_bytes().splitlines()) or 1
        return self.code + b"#line %d %s\n " % (count, c_string(os.fsencode(header)))

    def _nothing_text(self) -> str:
        """Say that there is no function, and where the user may have meant to find them."""
        text = "declares no function, expected at least one"
        if others := self._own.others(self._preprocessed()):
            names = ", ".join(others[:_MAX_NAMES]) + (", ..." if len(others) > _MAX_NAMES else "")
            text += f"; it includes {names}: name the header that declares them too"
            text += ", or choose headers by --header-filter"
        return text

    def input_files(self) -> Sequence[Path]:
        """Return the headers."""
        return self.headers

    def leave_out(self, reasons: Mapping[str, str]) -> bool:
        """Leave out functions for these reasons; return False if that solves nothing.

        Functions that the caller named stay, and so do all if none would be left.
        """
        missing = {
            d.name: reason
            for d in self.functions
            if d.name not in self._chosen and (reason := _reason_of(d, reasons))
        }
        kept = tuple(d for d in self.functions if d.name not in missing)
        wrong = {name: reasons[name] for name in self.c_constants.values if name in reasons}
        if not (missing or wrong):
            return False
        if not (kept or self.c_constants.values):
            if all(is_access(name) for name in missing):
                raise path_error(self.headers[0], self._nothing_text())
            return False
        made, self.functions = self.functions, kept
        self.c_constants = without(self.c_constants, wrong)
        variables = {variable_of(name): missing.pop(name) for name in [*missing] if is_access(name)}
        self.c_left_out |= dict(sorted({**variables, **wrong}.items()))
        known = self.c_globals.items()
        self.c_globals = {name: code for name, code in known if name not in variables}
        self.left_out.update(sorted(missing.items()))
        self.left_out_types.update((d.name, d.prototype) for d in made if d.name in missing)
        return True

    def avoid_macros(self, refused: Collection[str]) -> bool:
        """Call functions in place of macros of their names; return True if that changes a call."""
        free = set(refused) - self._chosen
        made = tuple(_past_macro(d) if d.name in free else d for d in self.functions)
        self.functions, before = made, self.functions
        return made != before

    def __repr__(self) -> str:
        return f"<HeaderModule {', '.join(repr(str(header)) for header in self.headers)}>"


def _past_macro(declaration: Declaration) -> Declaration:
    """Put the name of the function that is called in parentheses, which no macro has."""
    check = declaration.check
    if check.calls != declaration.name or check.expression:
        return declaration
    return declaration._replace(check=check._replace(calls=f"({check.calls})"))


def _reason_of(declaration: Declaration, reasons: Mapping[str, str]) -> str:
    """Return the reason for a function, or for one of which the compiler refused the same type."""
    if reason := reasons.get(declaration.check.calls.strip("()") or declaration.name):
        return reason
    conditions = declaration.check.conditions
    return next((r for r in reasons.values() if any(text in r for text in conditions)), "")


def _check(header: Path, names: Sequence[str]) -> None:
    """Refuse a file that is missing, or that a unit cannot include by its name."""
    if not header.is_file():
        raise path_error(header, "there is no such header")
    if '"' in header.name or "\\" in header.name or not header.name.isprintable():
        raise path_error(header, "no #include can have this name; rename the header")
    if names.count(header.name) > 1:
        text = "two headers of this name, expected names that differ; write one that includes both"
        raise path_error(header, text)
