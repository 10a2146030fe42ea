"""Functions that Numba compiles, in a library that needs no Python.

`found` finds the functions and their signatures, `script` does so for a file in a separate process,
`compile` has Numba make an object of them, `symbols` says what each symbol needs, `wrapper` writes
the C functions that callers reach. `support` is what the code needs at run time. Numba is imported
only by the first three.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from packer import ExportError
from packer.files.arguments import list_of
from packer.files.progress import silent
from packer.levels.note import mark_imported

from .blas import blas_path
from .module import NumbaModule as NumbaModule
from .source import Objects, Script

if TYPE_CHECKING:
    from .source import Progress, Source


def from_numba(
    function_or_path: Any,
    *signatures: str,
    functions: Mapping[str, str | Sequence[str]] | None = None,
    only: Sequence[str] = (),
    timeout: float = 60.0,
    force: bool = False,
    blas: str | os.PathLike[str] | None = None,
    progress: Progress = silent,
) -> NumbaModule:
    """Make a module of functions that Numba compiles: its library needs neither Numba nor Python.

    Parameters
    ----------
    function_or_path : function or path
        A function that ``@njit``, ``@cfunc``, ``@vectorize`` or ``@guvectorize`` made, a Python
        function, which is compiled as by ``@njit``; or a Python file, whose functions of these
        decorators are exported. The file is imported in a separate process.
    *signatures : str
        The signatures of a function: ``"float64(float64[::1])"``. By default its decorator's
        signatures, and all that this process has compiled.
    functions : mapping of str to str or sequence of str, optional
        Signatures of functions of a file, by name, which replace their decorators' signatures.
    only : sequence of str
        The functions of a file to export, in addition to `functions`; by default all. A function
        that is named here and cannot be exported ends the import.
    timeout : float
        How many seconds a file may need until it is imported.
    force : bool
        True to use a release of Numba that is not known to work.
    blas : path, optional
        The shared library of BLAS and LAPACK that functions such as ``np.dot`` call; by default
        that of the package scipy-openblas64.
    progress : callable
        Gets a text for the import of a file, for each function before it is compiled, and again for
        each level of an export.

    Returns
    -------
    NumbaModule
        Its `left_out` says which functions of a file are not exported, and why.

    Raises
    ------
    ExportError
        If Numba is missing or of an unknown release, if the file raises or does not end, if a
        function has no signature or needs Python; names the file and the line.

    Examples
    --------
    ::

        @numba.njit
        def dist(x):
            return math.sqrt((x * x).sum())

        module = packer.from_numba(dist, "float64(float64[::1])")
        path = packer.export_library(module, "geo.so")
        dist_of_library = runtime.load(path)["dist"]
    """
    made: Source
    if isinstance(function_or_path, (str, os.PathLike)):
        if signatures:
            text = "signatures of a file, expected functions={'name': signature}"
            raise ExportError(f"from_numba: {text}")
        chosen = {name: _texts(name, given) for name, given in (functions or {}).items()}
        names = tuple(list_of(only, "only"))
        progress(f"import {os.path.basename(function_or_path)}")
        made = Script(function_or_path, chosen, names, timeout, force, blas_path(blas))
    else:
        if functions or only:
            text = "functions and only, expected for a file; pass the signatures of a function"
            raise ExportError(f"from_numba: {text}")
        name = getattr(function_or_path, "__name__", type(function_or_path).__name__)
        made = Objects({name: function_or_path}, {name: signatures}, force, blas_path(blas))
    module = NumbaModule._of(made, progress)
    mark_imported(module, "the code")
    return module


def _texts(name: str, given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(list_of(given, f"signatures of {name}"))
