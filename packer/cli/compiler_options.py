"""The options of `packer export` that compilers and linkers have too: -I -D -f -m -O -L -l ..."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .parser import CommandParser


def add_compiler_options(parser: CommandParser) -> None:
    """Add the options; the value may be in the same word as the option or in the next one."""
    group = parser.add_argument_group(
        "compilers and linkers; all but -L -l -j need SOURCE, --header or a model"
    )
    for option, metavar, text in (
        ("-I", "FOLDER", "search headers in this folder"),
        ("-isystem", "FOLDER", "search headers in it, as if they were the system's"),
        ("-include", "HEADER", "include this header first: -include stdio.h"),
        ("-D", "NAME[=VALUE]", "define a macro"),
        ("-W", "WARNING", "print these warnings: -Wall"),
        ("-f", "OPTION", "an option of code, also for the link: -fopenmp, -fno-math-errno"),
        ("-m", "OPTION", "an option of the machine, also for the link: -march=native, -mavx2"),
        ("-L", "FOLDER", "search libraries in this folder"),
        ("-l", "NAME", "link a library: -lfoo"),
    ):
        parser.add_repeated(option, metavar, text, group)
    add = group.add_argument
    threads = "compile and link for threads"
    add("-pthread", action="store_true", help=threads)
    add("-O", metavar="LEVEL", help="optimise: -O3; default: -O2")
    add("-std", metavar="STANDARD", help="the standard of the language: -std=c11")
    jobs = "run at most N compilers at a time; default: one for each processor"
    add("-j", "--jobs", metavar="N", type=int, help=jobs)


def compiler_words(arguments: argparse.Namespace) -> list[str]:
    """Return the options for compilers, as words of a command."""
    return [
        *(f"-I{folder}" for folder in arguments.I),
        *(word for folder in arguments.isystem for word in ("-isystem", folder)),
        *(word for header in arguments.include for word in ("-include", header)),
        *(f"-D{macro}" for macro in arguments.D),
        *(f"-W{warning}" for warning in arguments.W),
        *([f"-O{arguments.O}"] if arguments.O is not None else []),
        *([f"-std={arguments.std}"] if arguments.std is not None else []),
        *_shared_words(arguments),
    ]


def _shared_words(arguments: argparse.Namespace) -> list[str]:
    """Return the options that compilers and the linker must agree on."""
    return [
        *(f"-f{option}" for option in arguments.f),
        *(f"-m{option}" for option in arguments.m),
        *(["-pthread"] if arguments.pthread else []),
    ]


def linker_words(arguments: argparse.Namespace) -> list[str]:
    """Return the options for the linker; folders are absolute, since it may run in another one.

    The threads of OpenMP's library outlive a call: they crash if the library is unmapped.
    """
    return [
        *(["-Wl,-z,nodelete"] if "openmp" in arguments.f else []),
        *_shared_words(arguments),
        *(f"-L{os.path.abspath(folder)}" for folder in arguments.L),
        *(f"-l{name}" for name in arguments.l),
    ]
