"""The options of `packer export` that compilers and linkers have too: -I -D -W -O -std -L -l -j."""

from __future__ import annotations

import argparse
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .parser import CommandParser


def add_compiler_options(parser: CommandParser) -> None:
    """Add the options; the value may be in the same word as the option or in the next one."""
    group = parser.add_argument_group(
        "compilers and linkers; -I -D -W -O -std need SOURCE, --header or a model"
    )
    for option, metavar, text in (
        ("-I", "FOLDER", "search headers in this folder"),
        ("-D", "NAME[=VALUE]", "define a macro"),
        ("-W", "WARNING", "print these warnings: -Wall"),
        ("-L", "FOLDER", "search libraries in this folder"),
        ("-l", "NAME", "link a library: -lfoo"),
    ):
        parser.add_repeated(option, metavar, text, group)
    add = group.add_argument
    add("-O", metavar="LEVEL", help="optimise: -O3; default: -O2")
    add("-std", metavar="STANDARD", help="the standard of the language: -std=c11")
    jobs = "run at most N compilers at a time; default: one for each processor"
    add("-j", "--jobs", metavar="N", type=int, help=jobs)


def compiler_words(arguments: argparse.Namespace) -> list[str]:
    """Return the options for compilers, as words of a command."""
    return [
        *(f"-I{folder}" for folder in arguments.I),
        *(f"-D{macro}" for macro in arguments.D),
        *(f"-W{warning}" for warning in arguments.W),
        *([f"-O{arguments.O}"] if arguments.O is not None else []),
        *([f"-std={arguments.std}"] if arguments.std is not None else []),
    ]


def linker_words(arguments: argparse.Namespace) -> list[str]:
    """Return the options for the linker; folders are absolute, since it may run in another one."""
    return [
        *(f"-L{os.path.abspath(folder)}" for folder in arguments.L),
        *(f"-l{name}" for name in arguments.l),
    ]
