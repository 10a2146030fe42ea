"""Compilers: find one, compile sources to object files, say what went wrong."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from runtime.error import ToolchainError

from ..files.text import shown_path
from .process import Completed, run, run_all
from .reproducible import compile_options

Language = Literal["c", "cc", "cu", "link"]
# Finds the compiler for a language: the first words of a command.
Compilers = Callable[[Language], tuple[str, ...]]

# The languages of sources, and which one a source's suffix says.
SOURCE_LANGUAGES: tuple[Language, ...] = ("c", "cc", "cu")
LANGUAGE_OF_SUFFIX: dict[str, Language] = {
    ".c": "c",
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".C"), "cc"),
    ".cu": "cu",
}

# language -> the variables that name its compiler, the programs looked for, how to get one.
# C links with a C++ driver too where there is one, since a static library may hold C++ (with
# --as-needed it costs nothing); each stands before the C driver of its own family, because
# clang++ beside gcc need not find a C++ library.
_COMPILERS: dict[Language, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "c": (("CC",), ("gcc", "clang", "cc"), "a C compiler, say gcc,"),
    "cc": (("CXX",), ("g++", "clang++", "c++"), "a C++ compiler, say g++,"),
    "cu": (("NVCC",), ("nvcc",), "the CUDA toolkit"),
    "link": (
        ("CXX", "CC"),
        ("g++", "gcc", "clang++", "clang", "c++", "cc"),
        "a C compiler, say gcc,",
    ),
}
_LANGUAGE_OPTIONS: dict[Language, str] = {"c": "c", "cc": "c++", "cu": "cu"}
# The first line with one of these says what is wrong, unless it only says that the linker did.
_TELLING = re.compile(
    r"\berror\s*:|\bfatal\s*:|undefined (?:reference|symbol)|multiple definition|cannot find"
    r"|recompile with|not recognized"
)
_EPILOGUE = re.compile(r"ld returned \d|linker command failed")


class Compilation(NamedTuple):
    """One source file on its way to an object file.

    Attributes
    ----------
    source, output : Path
        Read, and made.
    language : "c", "cc" or "cu"
        Whatever the suffix of `source` says.
    options : tuple of str
        Come after the default ones.
    include : tuple of Path
        Folders with headers.
    """

    source: Path
    output: Path
    language: Language
    options: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()


def find_compiler(language: Language, cc: str | None = None) -> tuple[str, ...]:
    """Find the compiler for a language.

    Parameters
    ----------
    language : "c", "cc", "cu" or "link"
        ``"link"`` for the driver that links what needs no special one.
    cc : str, optional
        The compiler to take, a name or path, with options after it if need be. Otherwise the
        variable CC, CXX or NVCC says it, in the same form; otherwise PATH is searched.

    Returns
    -------
    tuple of str
        The first words of a command: the absolute path of the program, and options.

    Raises
    ------
    ToolchainError
        There is none. What `cc` or a variable names is never passed over for another.
    """
    if cc and cc.strip():
        return _parse_compiler("cc", cc)
    if named := named_compiler(language):
        return named[1]
    variables, programs, package = _COMPILERS[language]
    for program in programs:
        if path := shutil.which(program):
            return (os.path.abspath(path),)
    raise ToolchainError(
        f"no compiler for {language!r}: none of {', '.join(programs)} is on PATH; "
        f"install {package} or name one in {' or '.join(variables)}"
    )


def named_compiler(language: Language) -> tuple[str, tuple[str, ...]] | None:
    """The variable that names the compiler for a language, and the command; None if none does.

    Raises
    ------
    ToolchainError
        There is no such program.
    """
    for variable in _COMPILERS[language][0]:
        value = os.environ.get(variable, "")
        if value.strip():
            return variable, _parse_compiler(variable, value)
    return None


def compilers(cc: str | Compilers | None) -> Compilers:
    """Find compilers as `find_compiler` does, or as is said; CUDA is nvcc's whatever `cc` is."""
    if callable(cc):
        return cc
    return lambda language: find_compiler(language, None if language == "cu" else cc)


def compile_sources(
    compilations: Sequence[Compilation], *, cwd: Path, find: Compilers = find_compiler
) -> list[Path]:
    """Compile several source files, as many at a time as there are processors.

    Parameters
    ----------
    compilations : sequence of Compilation
        What to compile.
    cwd : Path
        A private folder, where each compiler starts and has its temporary files.
    find : callable
        Finds the compiler for each.

    Returns
    -------
    list of Path
        The object files, in the order of `compilations`.

    Raises
    ------
    ToolchainError
        There is no compiler, or one did not make an object file; of several the first in order.
    """
    commands = [_compile_command(job, cwd, find(job.language)) for job in compilations]
    for job in compilations:
        job.output.unlink(missing_ok=True)  # what is there afterwards was made by this compiler
    ended = run_all(commands, cwd=cwd)
    for job, completed in zip(compilations, ended, strict=False):  # stops at the first bad one
        check(completed, f"compiling {shown_path(job.source.name)}", job.output)
    return [job.output for job in compilations]


def is_nvcc(compiler: Sequence[str]) -> bool:
    """Whether a command is NVIDIA's driver, which has options of its own for everything."""
    return any(os.path.basename(word) == "nvcc" for word in compiler)


def is_clang(compiler: Sequence[str]) -> bool:
    """Whether a command is clang's driver, by its name; zig's C compiler is one."""
    return any("clang" in os.path.basename(word) for word in compiler) or is_zig(compiler)


def is_zig(compiler: Sequence[str]) -> bool:
    """Whether a command is zig's C compiler: ``zig cc``, ``python -m ziglang cc``."""
    return os.path.basename(compiler[0]) == "zig" or "ziglang" in compiler


@functools.cache
def dump_machine(compiler: tuple[str, ...]) -> str | None:
    """Ask a compiler for its target, as ``x86_64-linux-gnu``; None if it does not know."""
    completed = run([*compiler, "-dumpmachine"], cwd=Path("/"))
    words = completed.output.split("\n")[-2:-1]  # warnings of a wrapper come before
    known = completed.returncode == 0 and words and re.fullmatch(r"[\w.]+(-[\w.]+)+", words[0])
    return words[0] if known else None


def refuse_other_programs(variable: str, compiler: Sequence[str]) -> None:
    """Refuse a program that a variable names and that is no compiler, before another does its work.

    C that needs no C++ library is linked by the C compiler, device code by none: then what CXX
    names is asked for its target only.

    Raises
    ------
    ToolchainError
        It answers neither ``-dumpmachine`` nor ``--version``.
    """
    if dump_machine(tuple(compiler)) is not None:
        return
    completed = run([*compiler, "--version"], cwd=Path("/"))
    if completed.returncode != 0:
        raise ToolchainError(
            f"{variable}={os.environ[variable]!r}: {_ending(completed)} when asked for its "
            f"--version, expected a compiler; name another one, or unset {variable}",
            command=completed.command,
            returncode=completed.returncode,
            stderr=completed.output,
        )


def spell(path: Path, cwd: Path) -> str:
    """Spell a path for a command: it never starts with ``-`` or ``@``.

    Below the private folder relative to it, so that __FILE__ is the same in every run.
    """
    absolute = path.absolute()
    if absolute.is_relative_to(cwd.absolute()):
        return f"./{absolute.relative_to(cwd.absolute())}"
    return str(absolute)


def check(completed: Completed, doing: str, output: Path) -> None:
    """Go on only if a program exited with 0 and made a file.

    Raises
    ------
    ToolchainError
        It did not; the message says what it was `doing`, and the line that tells why.
    """
    message = f"{os.path.basename(completed.command[0])} {_ending(completed)} {doing}"
    if completed.returncode != 0:
        message += f": {_summary(completed.output)}"
    elif not output.is_file():
        message += ", but made no output"
    elif output.stat().st_size == 0:
        message += ", but its output is empty"
    else:
        return
    raise ToolchainError(
        message,
        command=completed.command,
        returncode=completed.returncode,
        stderr=completed.output,
    )


def _parse_compiler(origin: str, value: str) -> tuple[str, ...]:
    """Read a compiler as a shell would, unless the whole text is the path of a program."""
    if path := shutil.which(value):
        return (os.path.abspath(path),)
    try:
        program, *options = shlex.split(value)
    except ValueError as error:
        raise ToolchainError(f"{origin}={value!r}: {str(error).lower()}") from error
    if path := shutil.which(program):
        return (os.path.abspath(path), *options)
    raise ToolchainError(
        f"{origin}={value!r}: there is no program {program!r}, expected the name or path of a "
        "compiler"
    )


def _compile_command(job: Compilation, cwd: Path, compiler: Sequence[str]) -> list[str]:
    include = [folder.absolute() for folder in job.include]
    source = spell(job.source, cwd)
    if is_nvcc(compiler):
        defaults = ["-O2", "-Xcompiler", "-fPIC"]
    else:
        folders = {
            **{folder: folder.name for folder in include},
            job.source.absolute().parent: ".",
            cwd.resolve(): ".",
        }
        name, clang = job.output.name, is_clang(compiler)
        fixed = compile_options(name, folders, job.options, is_clang=clang)
        defaults = ["-O2", "-fPIC", *fixed]
    return [
        *compiler,
        *defaults,
        *(f"-I{folder}" for folder in include),
        *job.options,
        *("-x", _LANGUAGE_OPTIONS[job.language]),
        *("-c", source),
        *("-o", spell(job.output, cwd)),
    ]


def _ending(completed: Completed) -> str:
    code = completed.returncode
    return f"exited with {code}" if code >= 0 else f"ended by {_signal_name(-code)}"


def _signal_name(number: int) -> str:
    try:
        name = signal.Signals(number).name
    except ValueError:  # a real-time signal
        name = f"signal {number}"
    return f"{name} (out of memory?)" if number == signal.SIGKILL else name


def _summary(output: str) -> str:
    """The line that says what is wrong, or else the last twenty."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for line in lines:
        if _TELLING.search(line) and not _EPILOGUE.search(line):
            return line
    return "\n".join(lines[-20:]) or "it printed nothing"
