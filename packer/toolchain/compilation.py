"""Compile sources to object files, as many at a time as there are processors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..files.text import shown_path
from .compiler import Compilers, Language, find_compiler, is_clang, is_nvcc
from .cuda import NVCC_DEFAULTS, options_for_nvcc
from .outcome import check
from .process import run_all
from .reproducible import compile_options

_LANGUAGE_OPTIONS: dict[Language, str] = {"c": "c", "cc": "c++", "cu": "cu"}


class Compilation(NamedTuple):
    """The compilation of one source file to an object file.

    Attributes
    ----------
    source, output : Path
        The files.
    language : "c", "cc" or "cu"
        The language of `source`, whatever its suffix is.
    options : tuple of str
        Options after the default ones.
    include : tuple of Path
        Folders with headers.
    """

    source: Path
    output: Path
    language: Language
    options: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()


def compile_sources(
    compilations: Sequence[Compilation], *, cwd: Path, find: Compilers = find_compiler
) -> list[Path]:
    """Compile source files, and return the object files in order.

    Each compiler starts in the private folder `cwd`, and writes its temporary files there.

    Raises
    ------
    ToolchainError
        If there is no compiler, or if one fails; of several failures the first in order.
    """
    commands = [_compile_command(job, cwd, find(job.language)) for job in compilations]
    for job in compilations:
        job.output.unlink(missing_ok=True)  # an old file would hide that the compiler wrote none
    ended = run_all(commands, cwd=cwd)
    for job, completed in zip(compilations, ended, strict=False):  # stops at the first bad one
        check(completed, f"compiling {shown_path(job.source.name)}", job.output)
    return [job.output for job in compilations]


def spell(path: Path, cwd: Path) -> str:
    """Spell a path for a command, so that it never starts with ``-`` or ``@``.

    A path in the private folder is relative, so that __FILE__ is the same in every run.
    """
    absolute = path.absolute()
    if absolute.is_relative_to(cwd.absolute()):
        return f"./{absolute.relative_to(cwd.absolute())}"
    return str(absolute)


def _compile_command(job: Compilation, cwd: Path, compiler: Sequence[str]) -> list[str]:
    include = [folder.absolute() for folder in job.include]
    source = spell(job.source, cwd)
    if is_nvcc(compiler):
        defaults = [*NVCC_DEFAULTS]
        options = [*options_for_nvcc(job.options)]
    else:
        folders = {
            **{folder: folder.name for folder in include},
            job.source.absolute().parent: ".",
            cwd.resolve(): ".",
        }
        name, clang = job.output.name, is_clang(compiler)
        fixed = compile_options(name, folders, job.options, is_clang=clang)
        defaults, options = ["-O2", "-fPIC", *fixed], [*job.options]
    return [
        *compiler,
        *defaults,
        *(f"-I{folder}" for folder in include),
        *options,
        *("-x", _LANGUAGE_OPTIONS[job.language]),
        *("-c", source),
        *("-o", spell(job.output, cwd)),
    ]
