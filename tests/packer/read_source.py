"""Source modules whose declarations a real compiler checks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from packer.declare.constants.variables import is_access
from packer.declare.declaration import Declaration
from packer.modules.c_source import CSourceModule
from packer.target import find_target

from ..support.wrapped_library import gcc


def read(code: str, functions: Any = "auto", fmt: str = "c") -> dict[str, Declaration]:
    """The declarations of a source by their names, without the functions of its variables."""
    made = CSourceModule(code + "\n", fmt=fmt, functions=functions).functions
    return {d.name: d for d in made if not is_access(d.name)}


def compile_errors(module: CSourceModule, folder: Path, *options: str) -> str:
    """Return the errors of the compiler for a source with its declarations."""
    file = module.write_code(folder / "checked", "o", find_target(None))
    made = gcc("-c", file.path, "-o", folder / "checked.o", *file.options, *options)
    assert (made.returncode == 0) == (not made.stderr)
    return made.stderr
