"""Compile sources to object files, as many at a time as there are processors."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from ..files.text import shown_path
from .build import current_build
from .cache import Command, Missing, ObjectCache
from .compiler import Compilers, Language, find_compiler, is_clang, is_nvcc
from .cuda import NVCC_DEFAULTS, options_for_nvcc
from .outcome import check
from .process import Completed, run_all
from .reproducible import compile_options

_START, _PRIVATE = Path("/start"), Path("/start/private")
# In a source, generated text may follow this.
END_OF_SOURCE = b"\n/* end of the source */\n"
LANGUAGE_OPTIONS: dict[Language, str] = {"c": "c", "cc": "c++", "cu": "cu"}
LANGUAGE_OPTIONS |= {"s": "assembler-with-cpp", "f90": "f95"}


class Compilation(NamedTuple):
    """The compilation of one source file to an object file."""

    source: Path
    output: Path
    language: Language  # that of `source`, whatever its suffix is
    options: tuple[str, ...] = ()  # options after the default ones
    include: tuple[Path, ...] = ()  # folders with headers
    # The name of the source in messages, by default its file name; the name of a file is a path in
    # a ``#line`` of the source.
    name: str = ""


def compile_sources(
    compilations: Sequence[Compilation], *, cwd: Path, find: Compilers = find_compiler
) -> list[Path]:
    """Compile source files, and return the object files in order.

    Compilers start in the folder of the build in effect, and write their temporary files in `cwd`,
    which is private. Raises ToolchainError if there is no compiler, or if one fails; of several
    failures the first in order.
    """
    if not compilations:
        return []
    build = current_build()
    build.hide(cwd.resolve())
    start = build.folder or cwd
    commands = [_command(job, start, cwd, find(job.language)) for job in compilations]
    for job, command in zip(compilations, commands, strict=True):
        job.output.unlink(missing_ok=True)  # an old file would hide that the compiler wrote none
        build.names[command.source] = job.name or job.source.name
    names = [shown_path(job.name or job.source.name) for job in compilations]
    for index, completed in sorted(_run(commands, names, start, cwd).items()):
        job = compilations[index]
        if completed.returncode != 0:
            _check_source_alone(job, cwd, find)
        check(completed, f"compiling {names[index]}", job.output)
    return [job.output for job in compilations]


def _check_source_alone(job: Compilation, cwd: Path, find: Compilers) -> None:
    """Refuse a source that has errors without the generated text after it.

    An error may be reported where that text begins: if the source lacks a brace, for example.
    """
    code, end, _ = job.source.read_bytes().partition(END_OF_SOURCE)
    if end:
        alone = job.source.with_name(f"alone-{job.source.name}")
        alone.write_bytes(code)
        options = (*job.options, "-w")
        output, name = alone.with_suffix(".o"), job.name or job.source.name
        replaced = job._replace(source=alone, output=output, options=options, name=name)
        compile_sources([replaced], cwd=cwd, find=find)


def _run(
    commands: Sequence[Command], names: Sequence[str], start: Path, private: Path
) -> dict[int, Completed]:
    """Run the commands whose objects are not in the cache; return the outcomes by their numbers."""
    build, outcomes = current_build(), dict[int, Completed]()
    with contextlib.closing(ObjectCache(start, _spelled_folder(start, private))) as cache:
        left: list[tuple[int, Missing | None]] = []
        for index, command in enumerate(commands):
            found = cache.find(command)
            if isinstance(found, str):
                outcomes[index] = Completed(tuple(command.words), 0, found)
            else:
                left.append((index, found))
        hits = len(outcomes)
        build.counted(hits, len(commands), hits)

        def end(number: int, completed: Completed) -> None:
            index, missing = left[number]
            if missing is not None:
                cache.store(missing, completed)
            outcomes[index] = completed
            build.counted(len(outcomes), len(commands), hits)

        words = [missing.words if missing else commands[index].words for index, missing in left]
        if build.executor is None:
            run_all(words, cwd=start, private=private, ended=end)
        else:
            from .remote import run_in_executor

            rows = [(w, commands[i], names[i]) for w, (i, _) in zip(words, left, strict=True)]
            run_in_executor(build.executor, rows, cwd=start, private=private, ended=end)
    return outcomes


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


def _command(job: Compilation, start: Path, private: Path, compiler: Sequence[str]) -> Command:
    """Return the command of a compilation, and the same in folders whose names are always alike."""
    words = _compile_command(job, start, private, compiler)
    neutral = job._replace(
        source=_moved(job.source, private, _PRIVATE), output=_PRIVATE / job.output.name
    )
    return Command(
        words,
        _compile_command(neutral, _START, _PRIVATE, compiler),
        tuple(compiler),
        (*(f"-I{folder.absolute()}" for folder in job.include), *job.options),
        LANGUAGE_OPTIONS[job.language],
        spell(job.source, start, private),
        job.output,
    )


def _moved(path: Path, folder: Path, to: Path) -> Path:
    """Return a path in a folder as one in another folder; any other path as it is."""
    absolute, inside = path.absolute(), folder.absolute()
    return to / absolute.relative_to(inside) if absolute.is_relative_to(inside) else path


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
            **dict.fromkeys(sorted({folder, folder.removeprefix("./")} - {"."}), "."),
        }
        if beside := os.path.dirname(job.name):
            prefixes[f"{beside}/"] = ""
        fixed = compile_options(job.output.name, start, prefixes, job.options, is_clang=clang)
        if job.language == "f90":  # without C's macros; module files are private, too
            fixed = [word for word in fixed if not word.startswith(("-D", "-Wno-"))]
            fixed += ["-J", folder]
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
