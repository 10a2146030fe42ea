"""NumbaModule: host code that Numba compiles."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from packer import ExportError
from packer.files.arguments import list_of
from packer.files.progress import silent
from packer.modules.host import CodeFile, HostModule, RunnableModule

from .blas import Blas, blas_path, find_blas, parts_of
from .source import Objects, Processor, Progress, Source
from .symbols import LIBRARY_FILES, SUPPORT, files, source_of
from .wrapper import declaration_of, source

if TYPE_CHECKING:
    from packer.levels.table import Level
    from packer.target import Target

    from .values import Unit

# The files of every module.
_CALLS = ("call.c", "choose.c", "message.c", "array.c", "nrt.c", "calls.c")
_UFUNC = ("ufunc.c", "ufunc_choose.c", "ufunc_cast.c")
# The wrappers store values of one type through pointers to another one.
_OPTIONS = (f"-I{SUPPORT}", "-O2", "-fno-strict-aliasing", "-fvisibility=hidden")


class NumbaModule(RunnableModule):
    """Functions that Numba compiles, by the names that callers use.

    Parameters
    ----------
    functions : mapping of str to function
        What ``@njit``, ``@cfunc``, ``@vectorize`` or ``@guvectorize`` made, or Python functions.
    signatures : mapping of str to str or sequence of str
        Signatures that replace the functions' own.
    force : bool
        True to use a release of Numba that is not known to work.
    blas : path, optional
        As for `from_numba`.

    Raises
    ------
    ExportError
        If Numba is missing or of an unknown release, or if a function has no signature or needs
        Python; names the file and the line.

    Attributes
    ----------
    left_out : dict of str to str
        The functions of a file that are not exported, each with the reason.
    notes : tuple of str
        What users should know, such as global arrays that are stored as they are now.

    Notes
    -----
    The code is for the machine that exports. `from_numba` makes a module of one function or a file.

    Examples
    --------
    ::

        module = packer.NumbaModule({"dist": geo.dist}, signatures={"dist": "f8(f8[::1])"})
        path = packer.export_library(module, "geo.so")
    """

    type_key = "numba"

    def __init__(
        self,
        functions: Mapping[str, Any],
        *,
        signatures: Mapping[str, str | Sequence[str]] | None = None,
        force: bool = False,
        blas: str | os.PathLike[str] | None = None,
    ) -> None:
        given = {
            name: (texts,) if isinstance(texts, str) else tuple(list_of(texts, "signatures"))
            for name, texts in (signatures or {}).items()
        }
        self._start(Objects(functions, given, force, blas_path(blas)), silent)

    @classmethod
    def _of(cls, made: Source, progress: Progress = silent) -> NumbaModule:
        module = cls.__new__(cls)
        module._start(made, progress)
        return module

    def _start(self, made: Source, progress: Progress) -> None:
        self._source, self._progress = made, progress
        self._units: dict[Processor, Unit] = {}
        names = repr(sorted(made.named)) + repr([str(path) for path in made.input_files()])
        digest = hashlib.sha256(names.encode()).hexdigest()[:10]
        self._prefix = f"__dso_numba_{digest}_"
        (unit,) = self.units([Processor()])
        self.left_out = dict(unit.refused)
        self.notes = unit.notes
        refused = {name: why for name, why in unit.refused.items() if name in made.named}
        if refused:
            name, why = next(iter(refused.items()))
            raise ExportError(f"{name}: cannot be exported: {why}", module=self.type_key)
        self._functions = unit.functions
        self.functions = tuple(
            declaration_of(index, function, self._prefix)
            for index, function in enumerate(unit.functions)
        )
        self.import_module(_CodeModule(self))
        own = _UFUNC if any(x.kind != "jit" for x in unit.functions) else ()
        for module in support_modules(unit.undefined, own, made.blas):
            self.import_module(module)

    def units(self, processors: Sequence[Processor]) -> list[Unit]:
        """Return the code for each processor; what was compiled before is kept."""
        new = [processor for processor in processors if processor not in self._units]
        if new:
            made = self._source.units(self._prefix, new, self._progress)
            self._units.update(zip(new, made, strict=True))
        return [self._units[processor] for processor in processors]

    def write_code(self, stem: Path, object_format: str, target: Target) -> CodeFile:
        """Write the C functions that take the values of a call."""
        del object_format
        if target.machine.name != os.uname().machine:
            text = f"{self!r}: Numba compiles for this machine, expected no other target"
            raise ExportError(f"{text}, found {target.triple!r}", module=self.type_key)
        path = stem.with_name(f"{stem.name}.c")
        path.write_text(source(self._functions, self._prefix), encoding="utf-8")
        return CodeFile(path, "c", _OPTIONS, is_ours=True)

    def input_files(self) -> Sequence[Path]:
        """Return the Python file."""
        return self._source.input_files()

    def __repr__(self) -> str:
        names = [declaration.name for declaration in self.functions]
        return f"<NumbaModule {', '.join(names)}>"


class _CodeModule(HostModule):
    """The object that Numba made of the functions of a module."""

    type_key = "numba.code"

    def __init__(self, owner: NumbaModule) -> None:
        self._owner = owner

    def write_code(self, stem: Path, object_format: str, target: Target) -> CodeFile:
        """Write the object for every processor of the machine."""
        del object_format, target
        return self._written(stem, [Processor()])

    def write_levels(
        self, stem: Path, object_format: str, target: Target, levels: Sequence[Level]
    ) -> CodeFile:
        """Write an object for each level."""
        del object_format, target
        return self._written(stem, [Processor(x.llvm_cpu, x.llvm_features) for x in levels])

    def _written(self, stem: Path, processors: Sequence[Processor]) -> CodeFile:
        paths = []
        for index, unit in enumerate(self._owner.units(processors)):
            path = stem.with_name(f"{stem.name}.{index}.o")
            path.write_bytes(unit.code)
            paths.append(path)
        variants = tuple(paths) if len(paths) > 1 else ()
        return CodeFile(paths[0], "o", name=repr(self._owner), variants=variants)


class _SupportModule(HostModule):
    """One C file that the code of all modules of a library shares."""

    type_key = "numba.support"

    def __init__(self, path: Path, blas: Blas | None) -> None:
        self.path = path
        self.libraries = ("m",)
        self._options: tuple[str, ...] = _OPTIONS
        if blas is not None:
            self._options += blas.options
            self.link_options = (str(blas.path), f"-Wl,-rpath,{blas.path.parent}")

    def write_code(self, stem: Path, object_format: str, target: Target) -> CodeFile:
        """Write a copy of the file: the folder of an export is private."""
        del object_format, target
        path = stem.with_name(f"{stem.name}.c")
        path.write_text(source_of(self.path), encoding="utf-8")
        return CodeFile(path, "c", self._options, is_ours=True)

    def __repr__(self) -> str:
        return f"<support of Numba {self.path.name!r}>"


# Two modules of one library share these: a symbol has one definition.
_MADE: WeakValueDictionary[str, _SupportModule] = WeakValueDictionary()


def support_modules(
    undefined: Collection[str], own: Collection[str], blas: Path | None
) -> list[_SupportModule]:
    """Return the modules of the C files that symbols need, and of further ones."""
    if own:
        undefined = {*undefined, "nb_note"}
    paths = [SUPPORT / name for name in (*_CALLS, *own)]
    paths += [path for path in files(undefined) if path not in paths]
    parts = parts_of(undefined)
    library = find_blas(blas, parts) if parts else None
    made = []
    for path in paths:
        used = library if path.name in LIBRARY_FILES else None
        key = path.name if used is None else f"{path.name} {used.path}"
        module = _MADE.get(key)
        if module is None:
            module = _MADE[key] = _SupportModule(path, used)
        made.append(module)
    return made
