"""CSourceModule: C, C++ or CUDA source that an export compiles."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, cast

from runtime.error import ExportError

from ..declare.automatic import functions_defined
from ..declare.c.scope import Scope
from ..declare.c_type import parse_functions
from ..declare.constants.confirmed import confirmations
from ..declare.constants.found import Constants, chosen, constants_of, without
from ..declare.constants.variables import is_access, variable_of, variables_of
from ..declare.declaration import AUTO, EVERY
from ..declare.redeclaration import redeclarations
from ..files.arguments import list_of
from ..files.shipped import headers
from ..toolchain.compilation import END_OF_SOURCE
from ..toolchain.compiler import C_LANGUAGES, LANGUAGE_OF_SUFFIX
from ..toolchain.preprocess import preprocess
from .host import CodeFile, HostModule, library_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runtime.modules.source import CarriedSourceModule

    from ..declare.automatic import Found
    from ..declare.c_type import Functions
    from ..declare.constants.found import IsOwn, Place
    from ..declare.declaration import Declaration
    from ..target import Target
    from ..toolchain.compiler import Language

_OF_ONE_LEVEL = ("-march=", "-mcpu=", "-flto")


class CSourceModule(HostModule):
    """Host code as source text.

    Parameters
    ----------
    source_or_path : str or path
        The code, or the file that contains it. A str with a line break, ``;`` or ``{`` is code;
        any other str, and any path object, is a file, read at once.
    fmt : {"c", "cc", "cu"}, optional
        The language; by default that of the file's suffix, else C.
    functions : mapping of str to str, FunctionDeclaration or mapping; sequence of str; or "auto"
        The functions to export, each with its C declaration: ``{"add": "int64_t(int64_t a,
        int64_t b)"}``. The source is compiled with the declarations after it, so that a wrong
        one is a compile error. ``{"add": "auto"}`` finds the declaration in the source, and plain
        ``"auto"`` exports every function that the source defines and whose type can be exported;
        ``{"*": "auto", "add": {"doc": "..."}, "sub": False}`` does so with changes. A plain
        sequence names packed C functions.
    include : sequence of path
        Folders with headers; relative ones are in the folder where compilers run.
    define : sequence of str
        Macros: ``"NAME"`` or ``"NAME=VALUE"``.
    libraries : sequence of str
        Names of libraries to link, such as ``"z"`` for libz.so. `export_library` takes options for
        the folders to search.
    options : sequence of str
        Further compiler options, for this source only.
    constants : sequence of str
        Patterns of the names of constants and variables to export, by default all: ``"SIZE_*"``;
        with ``!`` before it, of those to leave out: ``"!*"``. Only ``"auto"`` for all functions
        exports any.

    Raises
    ------
    ExportError
        If the file cannot be read, a declaration cannot be exported, or `options` is one str.
    ValueError
        If `fmt` is unknown.

    Attributes
    ----------
    left_out : dict of str to str
        The functions that ``"auto"`` did not export, each with the reason.
    c_constants : Constants
        The constants of the source: names of enums, and macros that are constant expressions.
    c_globals : dict of str to str
        The variables of the source, each with its code.
    c_left_out : dict of str to str
        The constants and variables that are not exported, each with the reason.
    is_read : bool
        True if `functions` were found in the source or in a header.
    drops : bool
        True if the user left functions out by name.

    Notes
    -----
    Functions of C++ and CUDA must be ``extern "C"``. Quoted includes are searched in the file's
    folder first. `dso_packer.h` is on the include path.

    Examples
    --------
    >>> import packer, runtime
    >>> add = packer.CSourceModule(
    ...     "long add(long a, long b) { return a + b; }",
    ...     functions={"add": "long(long a, long b)"},
    ... )
    >>> path = packer.export_library(add, "add.so")
    >>> runtime.load(path)["add"](40, 2)
    42
    """

    type_key = "c"

    def __init__(
        self,
        source_or_path: str | os.PathLike[str],
        *,
        fmt: str | None = None,
        functions: Functions | Sequence[str] | None = None,
        include: Sequence[str | os.PathLike[str]] = (),
        define: Sequence[str] = (),
        libraries: Sequence[str] = (),
        options: Sequence[str] = (),
        constants: Sequence[str] = (),
    ) -> None:
        self.path = _as_path(source_or_path)
        self.fmt = fmt or LANGUAGE_OF_SUFFIX.get(self.path.suffix if self.path else "", "c")
        if self.fmt not in C_LANGUAGES:
            raise ValueError(f"unknown fmt {self.fmt!r}; known: {', '.join(C_LANGUAGES)}")
        self.code = _read(self.path) if self.path else os.fsencode(source_or_path)
        self.options = compiler_options(include, define, options)
        self.libraries = library_names(libraries)
        self.left_out: dict[str, str] = {}
        self.c_left_out: dict[str, str] = {}
        self.left_out_types: dict[str, str] = {}
        self.is_read = functions == AUTO or (
            isinstance(functions, Mapping) and AUTO in functions.values()
        )
        given: Iterable[object] = functions.values() if isinstance(functions, Mapping) else ()
        self.drops = any(declaration is False for declaration in given)
        self.c_constants, self.c_globals = Constants(), dict[str, str]()
        self.patterns = list_of(constants, "constants")
        self.functions = self._read_functions(functions)

    def _read_functions(
        self, functions: Functions | Sequence[str] | None
    ) -> tuple[Declaration, ...]:
        """Read the declarations; the source says what their names mean."""
        chosen(self.patterns)  # refuses wrong ones
        if not functions or (not isinstance(functions, Mapping) and functions != AUTO):
            return self._listed(functions)
        code = self.code.decode("utf-8", "replace")
        scope = Scope(self._preprocessed, code, is_open=False, is_cpp=self.fmt != "c")
        changes = dict(functions) if isinstance(functions, Mapping) else {}
        if functions == AUTO or changes.pop(EVERY, None) == AUTO:
            found = functions_defined(scope, repr(self), changes)
            return self._take(found, scope, _is_of_user)
        return self._listed(functions, scope)

    def _listed(
        self, functions: Functions | Sequence[str] | None, scope: Scope | None = None
    ) -> tuple[Declaration, ...]:
        """Read declarations that the user lists; the constants of such a source are not read."""
        if self.patterns:
            text = f"{self!r}: constants of a source whose functions are listed, expected all: add"
            raise ExportError(f'{text} "*" = "auto" to the functions', module=self.type_key)
        return parse_functions(functions, module=repr(self), entry="main", scope=scope)

    def _take(
        self, found: Found, scope: Scope, is_own: IsOwn, *, is_header: bool = False
    ) -> tuple[Declaration, ...]:
        """Store the constants and what was left out; return the functions, and of variables."""
        self.left_out, self.left_out_types = found.left_out, found.left_out_types
        where = repr(self), is_own, chosen(self.patterns)
        variables = variables_of(scope, *where, is_header=is_header)
        self.c_constants, self.c_globals = constants_of(scope, *where[1:]), variables.codes
        self.c_left_out = {**self.c_constants.left_out, **variables.left_out}
        return (*found.made, *variables.made)

    def leave_out(self, reasons: Mapping[str, str]) -> bool:
        """Leave out constants and variables; the functions of a source stay."""
        known = (*self.c_constants.values, *self.c_globals)
        wrong = {name: reasons[name] for name in known if name in reasons}
        self.c_constants = without(self.c_constants, wrong)
        self.c_globals = {n: code for n, code in self.c_globals.items() if n not in wrong}
        self.functions = tuple(
            d for d in self.functions if not (is_access(d.name) and variable_of(d.name) in wrong)
        )
        self.c_left_out = {**self.c_left_out, **wrong}
        return bool(wrong)

    def _preprocessed(self) -> str:
        """Return what the compiler reads of the source, with the line markers and macros."""
        return preprocess(*self._unit(), macros=True)

    def _unit(self) -> tuple[bytes, Language, tuple[str, ...]]:
        """Return the source, its language and the options of its compilation."""
        options = (*self._beside(), f"-I{headers()}", *self.options)
        return self._lines(), cast("Language", self.fmt), options

    def _lines(self) -> bytes:
        """Return the code, with the name of its file."""
        if not self.path:
            return self.code
        return b"#line 1 " + c_string(os.fsencode(self.path)) + b"\n" + self.code

    def _beside(self) -> tuple[str, ...]:
        """Return the options by which quoted includes are found beside the source."""
        return ("-iquote", str(self.path.absolute().parent)) if self.path else ()

    @classmethod
    def from_carried(cls, module: CarriedSourceModule) -> CSourceModule:
        """View source that a blob contains; it has no declarations."""
        made = cls("", fmt=module.fmt)
        made.path, made.code = None, module.code.encode()
        return made

    def get_source(self, fmt: str = "") -> str:
        """Return the text."""
        if fmt not in ("", self.fmt):
            return super().get_source(fmt)
        return self.code.decode("utf-8", "replace")

    def save(self, path: str | os.PathLike[str], fmt: str = "") -> None:
        """Write the text to a file."""
        if fmt not in ("", self.fmt):
            super().save(path, fmt)
        Path(path).write_bytes(self.code)

    @property
    def one_level(self) -> str:
        """The option that compiles for one processor, or to no machine code."""
        return next((f"option {o!r}" for o in self.options if o.startswith(_OF_ONE_LEVEL)), "")

    def write_code(self, stem: Path, object_format: str, target: Target) -> CodeFile:
        """Write the source with its declarations after it."""
        del object_format, target  # they matter to the compiler only
        path = stem.with_name(f"{stem.name}.{self.fmt}")
        language = "c" if self.fmt == "c" else "cc"
        text = redeclarations(self.functions, language) + confirmations(self.c_constants, language)
        ours = text.encode()
        path.write_bytes(self._lines() + END_OF_SOURCE + ours)
        name = str(self.path) if self.path else "<string>"
        return CodeFile(path, self.fmt, (*self._beside(), *self.options), name=name)

    def __repr__(self) -> str:
        return f"<CSourceModule {str(self.path) if self.path else self.fmt!r}>"


def compiler_options(
    include: Sequence[str | os.PathLike[str]], define: Sequence[str], options: Sequence[str]
) -> tuple[str, ...]:
    """Return folders of headers, macros and further options as words of a command."""
    return (
        *(f"-I{os.fspath(folder)}" for folder in list_of(include, "include")),
        *(f"-D{macro}" for macro in list_of(define, "define")),
        *list_of(options, "options"),
    )


def _is_of_user(place: Place) -> bool:
    """Return True for a declaration or macro outside of the headers of the system and of packer."""
    return not place.is_system and not place.file.startswith(f"{headers()}/")


def _as_path(source_or_path: str | os.PathLike[str]) -> Path | None:
    if isinstance(source_or_path, str) and any(c in source_or_path for c in "\n;{"):
        return None
    return Path(source_or_path) if source_or_path else None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        text = f"{path}: cannot be read as source: {error.strerror}"
        raise ExportError(text, module="c", path=str(path)) from error


def c_string(data: bytes) -> bytes:
    """A C string; invisible characters are escapes, since compilers warn of some."""
    text = os.fsdecode(data)
    written = text.replace("\\", "\\\\").replace('"', '\\"')
    return b'"' + b"".join(map(_c_character, written)) + b'"'


def _c_character(character: str) -> bytes:
    data = os.fsencode(character)
    return data if character.isprintable() else b"".join(b"\\%03o" % byte for byte in data)
