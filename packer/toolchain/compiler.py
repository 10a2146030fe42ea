"""Compilers: find one, and identify it."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from runtime.error import ToolchainError

from .cuda import find_installed
from .outcome import ending, failure
from .process import run

Language = Literal["c", "cc", "cu", "s", "f90", "link"]
# Finds the compiler for a language: the first words of a command.
Compilers = Callable[[Language], tuple[str, ...]]

# The languages of sources, those whose declarations packer reads, and the language of each suffix.
C_LANGUAGES: tuple[Language, ...] = ("c", "cc", "cu")
SOURCE_LANGUAGES: tuple[Language, ...] = (*C_LANGUAGES, "s", "f90")
LANGUAGE_OF_SUFFIX: dict[str, Language] = {
    ".c": "c",
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".C"), "cc"),
    ".cu": "cu",
    **dict.fromkeys((".s", ".S"), "s"),
    **dict.fromkeys((".f90", ".f95", ".f03", ".f08"), "f90"),
}

# language -> the variables that name its compiler, the programs that are searched, what to install.
# A C++ driver links C too, since a static library may contain C++ (with --as-needed this costs
# nothing). Each C++ driver comes before the C driver of the same vendor: clang++ on a machine with
# gcc may not find a C++ library.
_COMPILERS: dict[Language, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "c": (("CC",), ("gcc", "clang", "cc"), "a C compiler, such as gcc,"),
    "cc": (("CXX",), ("g++", "clang++", "c++"), "a C++ compiler, such as g++,"),
    "s": (("CC",), ("gcc", "clang", "cc"), "a C compiler, such as gcc,"),
    "f90": (("FC",), ("gfortran", "flang-new", "flang"), "a Fortran compiler, such as gfortran,"),
    "cu": (("NVCC",), ("nvcc",), "the CUDA toolkit or PyPI's nvidia-cuda-nvcc,"),
    "link": (
        ("CXX", "CC"),
        ("g++", "gcc", "clang++", "clang", "c++", "cc"),
        "a C compiler, such as gcc,",
    ),
}


def find_compiler(language: Language, cc: str | None = None) -> tuple[str, ...]:
    """Find the compiler for a language; return its absolute path and options.

    ``"link"`` is the driver that links code of any language. `cc` is the name or path of the
    compiler, and options after it; by default the value of CC, CXX or NVCC, in the same form. If
    that is not set, PATH is searched, and for nvcc PyPI's packages. Raises ToolchainError if there
    is none. A compiler that `cc` or a variable names is never replaced by another.
    """
    if cc and cc.strip():
        return _parse_compiler("cc", cc)
    if named := named_compiler(language):
        return named[1]
    variables, programs, package = _COMPILERS[language]
    for program in programs:
        if path := shutil.which(program):
            return (os.path.abspath(path),)
    if language == "cu" and (path := find_installed()):
        return (path,)
    raise ToolchainError(
        f"no compiler for {language!r}: none of {', '.join(programs)} is on PATH; "
        f"install {package} or name one in {' or '.join(variables)}"
    )


def named_compiler(language: Language) -> tuple[str, tuple[str, ...]] | None:
    """Return the variable that names the compiler for a language, and the command, or None.

    Raises ToolchainError if there is no such program.
    """
    for variable in _COMPILERS[language][0]:
        value = os.environ.get(variable, "")
        if value.strip():
            return variable, _parse_compiler(variable, value)
    return None


def compilers(cc: str | Compilers | None) -> Compilers:
    """Return the function that finds compilers: `cc`, or one that prefers it; CUDA needs nvcc."""
    if callable(cc):
        return cc
    return lambda language: find_compiler(language, None if language == "cu" else cc)


def is_nvcc(compiler: Sequence[str]) -> bool:
    """Return True if a command is NVIDIA's driver, whose options differ from other compilers'."""
    return any(os.path.basename(word) == "nvcc" for word in compiler)


def is_clang(compiler: Sequence[str]) -> bool:
    """Return True if a command is clang's driver, by its name; zig's C compiler is one."""
    return any("clang" in os.path.basename(word) for word in compiler) or is_zig(compiler)


def is_zig(compiler: Sequence[str]) -> bool:
    """Return True if a command is zig's C compiler: ``zig cc``, ``python -m ziglang cc``."""
    return os.path.basename(compiler[0]) == "zig" or "ziglang" in compiler


@functools.cache
def dump_machine(compiler: tuple[str, ...]) -> str | None:
    """Ask a compiler for its target, as ``x86_64-linux-gnu``; None if it prints none."""
    completed = run([*compiler, "-dumpmachine"], cwd=Path("/"))
    words = completed.output.split("\n")[-2:-1]  # warnings of a wrapper come before
    known = completed.returncode == 0 and words and re.fullmatch(r"[\w.]+(-[\w.]+)+", words[0])
    return words[0] if known else None


def refuse_other_programs(variable: str, compiler: Sequence[str]) -> None:
    """Refuse a program that a variable names and that is not a compiler.

    Without this check it would be unused and unnoticed if C or device code alone is exported: then
    the program in CXX is only asked for its target. Raises ToolchainError if it accepts neither
    ``-dumpmachine`` nor ``--version``.
    """
    if dump_machine(tuple(compiler)) is not None:
        return
    completed = run([*compiler, "--version"], cwd=Path("/"))
    if completed.returncode != 0:
        text = f"{variable}={os.environ[variable]!r}: {ending(completed)} when run with --version"
        text += f", expected a compiler; name another one, or unset {variable}"
        raise failure(completed, text)


def _parse_compiler(origin: str, value: str) -> tuple[str, ...]:
    """Parse a command as a shell does, unless the whole text is the path of a program."""
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
