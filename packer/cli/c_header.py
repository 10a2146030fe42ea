"""``packer c-header``: write a type-safe C header of one library."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from .parser import CommandParser
from .terminal import write

_DESCRIPTION = """\
Write a header of one library for programs in C and C++: an inline function for each function whose
C types the library knows, with its documentation, and constants for the names of the weights. The
library is read, not run."""

_EPILOG = """\
examples:
  packer c-header model.so -o model.h
  packer c-header model.so                  # to stdout; names begin with model_
  cc program.c $(packer config --cflags --libs) -o program"""


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parse the arguments of ``packer c-header``."""
    parser = CommandParser("packer c-header", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument("library", metavar="LIBRARY", help="the library")
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="the header; its name is the prefix of all names"
    )
    return parser.parse_paths(argv)


def run(arguments: argparse.Namespace) -> None:
    """Write the header to the file, or to stdout."""
    from pathlib import Path

    from ..packaging.c_header import header_text, write_header
    from ..packaging.c_header.names import identifier

    if arguments.output is not None:
        write_header(arguments.library, arguments.output)
    else:
        write(header_text(arguments.library, identifier(Path(arguments.library).stem)).rstrip())
