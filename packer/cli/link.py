"""``packer link``: link what an export made as a tar, an object or an archive."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Sequence

from ..deferred_link import link_library
from ..files.text import shown_path
from .parser import CommandParser
from .terminal import showing_steps, size_text, write

_DESCRIPTION = """\
Link what `packer export` made as a tar, an object or an archive, on the machine that it is for.

What comes out is checked as an export checks it: its machine, functions and every embedded byte.
Nothing of the inputs is run; a tar that holds anything but objects, by plain names, is refused."""

_EPILOG = """\
examples:
  packer link model.tar -o model.so
  packer link model.o -o model.so --option=-lfoo
  packer link net1.a net2.a -o both.so
  packer link model.tar -o model.o

Options that a tar was exported with are passed on if they name libraries (-lfoo, -pthread); any
other must be repeated here: a linker can be told to run or to read anything."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Read the words behind ``packer link``."""
    parser = CommandParser("packer link", description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("inputs", nargs="+", metavar="INPUT", help=".tar, .o or .a")
    add("-o", "--output", required=True, metavar="FILE", help="the library, or a .o or .a")
    add("--target", metavar="TRIPLE", help="for another machine or system: aarch64-linux-gnu")
    add(
        "--option",
        action="append",
        default=[],
        metavar="OPTION",
        help="a further option for the linker driver; as often as needed",
    )
    add("--save-temps", metavar="FOLDER", help="keep the intermediate files in this folder")
    add("-v", "--verbose", action="store_true", help="print each step and every command")
    return parser.parse_paths(argv)


def run(arguments: argparse.Namespace) -> None:
    """Link, and say in one line what was made.

    Raises
    ------
    PackerError
        It cannot be linked.
    """
    started = time.monotonic()
    with showing_steps(arguments.verbose) as steps:
        link_library(
            arguments.inputs,
            arguments.output,
            target=arguments.target,
            options=arguments.option,
            workspace_dir=arguments.save_temps,
            progress=steps,
        )
    seconds = time.monotonic() - started
    size = size_text(os.path.getsize(arguments.output))
    write(f"{shown_path(arguments.output)}: {size}, {seconds:.2f} s")
