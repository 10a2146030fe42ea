"""``packer link``: link tars, objects and archives that an export made."""

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
Link the tars, objects and archives that `packer export` made, usually on the machine they are for.

The output is verified as by an export: its machine, its functions and every embedded byte. The
inputs are not run. A tar that contains other files than objects is refused."""

_EPILOG = """\
examples:
  packer link model.tar -o model.so
  packer link model.o -o model.so --option=-lfoo
  packer link net1.a net2.a -o both.so
  packer link model.tar -o model.o

The linker gets the options of a tar only if they name libraries (-lfoo, -pthread). Repeat other
options here if you trust them: an option can make the linker run or read any file."""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer link``."""
    parser = CommandParser("packer link", description=_DESCRIPTION, epilog=_EPILOG)
    add = parser.add_argument
    add("inputs", nargs="+", metavar="INPUT", help="a .tar, .o or .a")
    add("-o", "--output", required=True, metavar="FILE", help="the library, or a .o or .a")
    parser.add_link_options()
    return parser.parse_paths(argv)


def run(arguments: argparse.Namespace) -> None:
    """Link, and print the size of the output."""
    started = time.monotonic()
    with showing_steps(arguments.verbose) as steps:
        link_library(
            arguments.inputs,
            arguments.output,
            target=arguments.target,
            soname=arguments.soname,
            options=arguments.option,
            workspace_dir=arguments.save_temps,
            progress=steps,
        )
    seconds = time.monotonic() - started
    size = size_text(os.path.getsize(arguments.output))
    write(f"{shown_path(arguments.output)}: {size}, {seconds:.2f} s")
