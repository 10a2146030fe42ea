"""Where functions come from: objects of this process, or a file."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from packer import ExportError

from .versions import check_installed

if TYPE_CHECKING:
    from .values import Unit

Progress = Callable[[str], None]


class Processor(NamedTuple):
    """The processor of the code: LLVM's name and features; ``"native"`` is this machine's."""

    name: str = ""
    features: str = ""


class Source(ABC):
    """Functions that are compiled for one processor or more."""

    blas: Path | None = None  # the library of BLAS and LAPACK, as for `find_blas`

    @abstractmethod
    def units(self, prefix: str, processors: Sequence[Processor], progress: Progress) -> list[Unit]:
        """Compile for each processor; symbols begin with `prefix`."""

    @property
    @abstractmethod
    def named(self) -> frozenset[str]:
        """The functions that the user named: they are exported, or the export ends."""

    def input_files(self) -> Sequence[Path]:
        """Return the files that are read."""
        return ()


class Objects(Source):
    """Functions of this process."""

    def __init__(
        self,
        functions: Mapping[str, Any],
        signatures: Mapping[str, Sequence[str]],
        force: bool,
        blas: Path | None = None,
    ) -> None:
        self._functions, self._signatures = dict(functions), dict(signatures)
        self.blas = blas
        if others := set(self._signatures) - set(self._functions):
            text = f"signatures of {sorted(others)[0]!r}, expected a function of this name"
            raise ExportError(f"NumbaModule: {text}")
        check_installed(force)

    @property
    def named(self) -> frozenset[str]:
        """All of them."""
        return frozenset(self._functions)

    def units(self, prefix: str, processors: Sequence[Processor], progress: Progress) -> list[Unit]:
        """Compile in this process."""
        from .compile import compile_functions
        from .found import NotFoundError, find

        found, refused = [], {}
        for name, given in self._functions.items():
            try:
                found.append(find(name, given, self._signatures.get(name, ())))
            except NotFoundError as error:
                refused[name] = str(error)
        units = compile_functions(found, prefix, processors, self.blas, progress)
        return [unit._replace(refused={**refused, **unit.refused}) for unit in units]


class Script(Source):
    """The functions of a Python file, which another process imports and compiles."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        signatures: Mapping[str, Sequence[str]],
        only: Sequence[str],
        timeout: float,
        force: bool,
        blas: Path | None = None,
    ) -> None:
        self.path = Path(path)
        self.blas = blas
        self._signatures, self._only = dict(signatures), tuple(only)
        self._timeout = timeout
        check_installed(force)

    @property
    def named(self) -> frozenset[str]:
        """The functions with signatures of the caller, and the functions of `only`."""
        return frozenset((*self._signatures, *self._only))

    def units(self, prefix: str, processors: Sequence[Processor], progress: Progress) -> list[Unit]:
        """Import and compile in another process."""
        from .script import run_script

        return run_script(
            self.path,
            self._signatures,
            self._only,
            self._timeout,
            prefix,
            processors,
            self.blas,
            progress,
        )

    def input_files(self) -> Sequence[Path]:
        """Return the file."""
        return (self.path,)
