"""Compile sources to object files, as many at a time as there are processors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..files.text import shown_path
from .build import current_build
from .compiler import Compilers, Language, find_compiler, is_clang, is_nvcc
from .cuda import NVCC_DEFAULTS, options_for_nvcc
from .outcome import check
from .process import run_all
from .reproducible import compile_options

LANGUAGE_OPTIONS: dict[Language, str] = {"c": "c", "cc": "c++", "cu": "cu"}


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
    name : str
        The name of the source in messages, by default its file name; the name of a file is a path
        in a ``#line`` of the source.
    """

    source: Path
    output: Path
    language: Language
    options: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()
    name: str = ""


def compile_sources(
    compilations: Sequence[Compilation], *, cwd: Path, find: Compilers = find_compiler
) -> list[Path]:
    """Compile source files, and return the object files in order.

    Parameters
    ----------
    compilations : sequence of Compilation
        The files.
    cwd : Path
        The private folder, in which compilers write their temporary files. They start in the
        folder of the build in effect.
    find : callable
        Finds the compiler for a language.

    Raises
    ------
    ToolchainError
        If there is no compiler, or if one fails; of several failures the first in order.
    """
    build = current_build()
    build.hide(cwd.resolve())
    start = build.folder or cwd
    commands = [_compile_command(job, start, cwd, find(job.language)) for job in compilations]
    for job in compilations:
        job.output.unlink(missing_ok=True)  # an old file would hide that the compiler wrote none
        build.names[spell(job.source, start, cwd)] = job.name or job.source.name
    ended = run_all(commands, cwd=start, private=cwd)
    for job, completed in zip(compilations, ended, strict=False):  # stops at the first bad one
        check(completed, f"compiling {shown_path(job.name or job.source.name)}", job.output)
    return [job.output for job in compilations]


def spell(path: Path, start: Path, private: Path) -> str:
    """Spell a path for a command, so that it never starts with ``-`` or ``@``.

    A path in the private folder is relative to `start`, where the command starts: so no map of
    prefixes but ours is for it.
    """
    absolute = path.absolute()
    if not absolute.is_relative_to(private.absolute()):
        return str(absolute)
    inside = absolute.relative_to(private.absolute())
    return os.path.join(_spelled_folder(start, private), inside)


def _spelled_folder(start: Path, private: Path) -> str:
    relative = os.path.relpath(private.resolve(), start)
    return relative if relative.startswith(".") else f"./{relative}"


def _compile_command(
    job: Compilation, start: Path, private: Path, compiler: Sequence[str]
) -> list[str]:
    include = [folder.absolute() for folder in job.include]
    if is_nvcc(compiler):
        defaults = [*NVCC_DEFAULTS]
        options = [*options_for_nvcc(job.options)]
    else:
        clang, folder = is_clang(compiler), _spelled_folder(start, private)
        prefixes = {
            **{str(folder): folder.name for folder in include},
            str(job.source.absolute().parent): ".",
            str(private.resolve()): ".",
            **dict.fromkeys({folder, folder.removeprefix("./")} - {"."}, "."),
        }
        if beside := os.path.dirname(job.name):
            prefixes[f"{beside}/"] = ""
        fixed = compile_options(job.output.name, start, prefixes, job.options, is_clang=clang)
        defaults, options = ["-O2", "-fPIC", *fixed], [*job.options]
    return [
        *compiler,
        *defaults,
        *(f"-I{folder}" for folder in include),
        *options,
        *("-x", LANGUAGE_OPTIONS[job.language]),
        *("-c", spell(job.source, start, private)),
        *("-o", str(job.output.absolute())),
    ]
