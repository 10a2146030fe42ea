"""The library of BLAS and LAPACK that the files blas.c, lapack.c and lapack_values.c call."""

from __future__ import annotations

import importlib
import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from packer import ExportError
from packer.elf.dynamic import read_dynamic
from packer.files.text import path_error

from .symbols import Library, find

_PACKAGE = "scipy_openblas64"
# Prefix, suffix and bits of an integer, of libraries with Fortran's interface.
_NAMES = (
    ("scipy_", "_64_", 64),
    ("scipy_", "_", 32),
    ("", "_64_", 64),
    ("", "64_", 64),
    ("", "_", 32),
)
_ROUTINES = {"blas": "dgemm", "lapack": "dgesdd"}


class Blas(NamedTuple):
    """A library, and how its functions are called."""

    path: Path  # the shared library
    options: tuple[str, ...]  # what the compiler of the C files needs to know


def find_blas(
    path: Path | None = None, parts: Collection[str] = ("blas",), *, integers: int | None = None
) -> Blas:
    """Return the library that the user names, or that of the package scipy-openblas64.

    Parameters
    ----------
    path : Path, optional
        A shared library.
    parts : collection of str
        What it must have: ``"blas"``, ``"lapack"``.
    integers : int, optional
        Bits of its integers, 32 or 64, where the names of its functions do not say it.

    Raises
    ------
    ExportError
        There is no library, it has not these functions, or a load would not find it.
    """
    library = path if path is not None else _of_package()
    dynamic = read_dynamic(library)
    library = _as_loaded(library, dynamic.linkage().soname)
    symbols = dynamic.symbols
    wanted = [_ROUTINES[part] for part in sorted(parts)]
    for prefix, suffix, bits in _NAMES:
        if all(
            (found := symbols.find(prefix + name + suffix)) and found.defined for name in wanted
        ):
            return Blas(library, _options(prefix, suffix, integers or bits))
    names = ", ".join(f"{name}_" for name in wanted)
    raise ExportError(
        f"{library}: library of BLAS: expected the symbols {names}, as Fortran names them, or with "
        f"the prefix scipy_ or the suffix 64_, found none; name a library with them, such as "
        f"libopenblas.so"
    )


def _as_loaded(library: Path, soname: str | None) -> Path:
    """Return the path by which a load finds it: a file with the name that it has itself."""
    if soname is None:
        return library
    real = library.resolve()
    for folder in (library.parent, real.parent):
        if (folder / soname).is_file():
            return folder / soname
    raise ExportError(
        f"{library}: library of BLAS: its own name is {soname!r}, expected a file of this name in "
        f"{real.parent}, found none; a load would not find it: rename the file, or add a link"
    )


def blas_path(given: str | os.PathLike[str] | None) -> Path | None:
    """Return the library that a user names, absolute. ExportError if it has no BLAS."""
    if given is None:
        return None
    path = Path(given).absolute()
    if not path.is_file():
        raise path_error(path, "there is no such file")
    find_blas(path)
    return path


def parts_of(names: Collection[str]) -> set[str]:
    """Return the parts of a library that symbols need: ``"blas"``, ``"lapack"``."""
    origins = map(find, names)
    return {origin.library for origin in origins if isinstance(origin, Library)}


def why_missing(path: Path | None, parts: Collection[str]) -> str:
    """Return why there is no library with these parts; empty if there is one."""
    try:
        find_blas(path, parts)
    except ExportError as error:
        return str(error)
    return ""


def _of_package() -> Path:
    try:
        package = importlib.import_module(_PACKAGE)
    except ImportError as error:
        raise ExportError(
            "library of BLAS: the code calls BLAS or LAPACK, expected a library that you name or "
            "the package scipy-openblas64, found neither; pip install scipy-openblas64"
        ) from error
    return Path(package.get_lib_dir()) / f"lib{package.get_library()}.so"


def _options(prefix: str, suffix: str, bits: int) -> tuple[str, ...]:
    from numba import _helperlib

    pivots = 64 if getattr(_helperlib, "LAPACK_BUILD_ILP64", 0) else 32
    return (
        f"-DNB_BLAS_PREFIX={prefix}",
        f"-DNB_BLAS_SUFFIX={suffix}",
        f"-DNB_BLAS_INT=int{bits}_t",
        f"-DNB_PIVOT_INT=int{pivots}_t",
    )
